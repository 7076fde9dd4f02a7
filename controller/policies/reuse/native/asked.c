/* A block is asked for: what is remembered of it goes on, and whether it should be in the pool is decided. */
#include "core.h"
#include "methods.h"

#define RECENT_LINK offsetof(Block, recent)

void weir_set_fragments(Core *core, uint32_t id, long fragments) {
    Block *block = &core->blocks[id];
    if (block->fragments != fragments) weir_resize(core, id, (int32_t)fragments);
}

static void begin(Core *core, uint32_t id, uint32_t parent, int is_last) {
    Block *block = &core->blocks[id];
    if (parent != NONE) core->blocks[parent].children++;
    block->parent = parent;
    block->is_known = 1;
    block->is_last = (uint8_t)is_last;
    block->count = 0;
    block->born = block->again = 0;
    block->gap_ticks = 0.0;
    block->lineage = 0;
    if (parent != NONE) {
        Block *grown_from = &core->blocks[parent];
        block->lineage = (uint8_t)weir_lineage_of(grown_from);
        if (++grown_from->born >= MAX_CHILDREN) grown_from->born /= 2, grown_from->again /= 2;
    }
    core->known++;
    list_add(core, &core->recent, RECENT_LINK, id);
}

/* Ask for a block: -1 if the pool has it, else whether it should. */
static PyObject *ask_all(Core *core, uint32_t id, uint32_t times) {
    Block *block = &core->blocks[id];
    weir_ask_learned(core, id, times);
    weir_touch(core, id);
    return PyLong_FromLong(block->is_in_pool ? -1 : block->is_held);
}

PyObject *weir_core_ask(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Core *core = (Core *)self;
    if (n != 6) return PyErr_Format(PyExc_TypeError, "ask takes 6 arguments");
    PyObject *key = args[0], *parent_key = args[1];
    long is_last = PyObject_IsTrue(args[2]), place = PyLong_AsLong(args[3]), fragments = PyLong_AsLong(args[4]);
    long times = PyLong_AsLong(args[5]);
    if (PyErr_Occurred()) return NULL;
    if (place < 0 || place >= core->places || fragments < 0 || fragments > INT32_MAX || times < 1 || times > INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "a place, size or number of times that cannot be");
    uint32_t id = weir_find(core, key), parent = NONE;
    if (id == NONE && PyErr_Occurred()) return NULL;
    if (id == NONE || !core->blocks[id].is_known) {
        if (parent_key != Py_None) {
            parent = weir_find(core, parent_key);
            if (parent == NONE && PyErr_Occurred()) return NULL;
            if (parent == NONE || !core->blocks[parent].is_known || parent == id) return PyLong_FromLong(-2);
        }
        id = weir_find_or_make(core, key);
        if (id == NONE) return NULL;
        weir_set_fragments(core, id, fragments);
        begin(core, id, parent, (int)is_last);
    } else
        weir_set_fragments(core, id, fragments);
    core->blocks[id].place = (uint32_t)place;
    return ask_all(core, id, (uint32_t)times);
}

PyObject *weir_core_give_up(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(id == NONE || !core->blocks[id].is_known || weir_give_up(core, id));
}

PyObject *weir_core_hits(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Core *core = (Core *)self;
    if (n != 2) return PyErr_Format(PyExc_TypeError, "hits takes 2 arguments");
    long times = PyLong_AsLong(args[1]);
    uint32_t id = weir_find(core, args[0]);
    if (PyErr_Occurred()) return NULL;
    if (times < 1 || times > INT32_MAX) return PyErr_Format(PyExc_ValueError, "times must be 1 or more");
    if (id == NONE || !core->blocks[id].is_known) return PyLong_FromLong(-2);
    return ask_all(core, id, (uint32_t)times);
}
