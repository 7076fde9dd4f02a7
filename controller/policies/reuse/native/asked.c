/* A block is asked for: all experts are, and what is remembered of it goes on. */
#include "core.h"
#include "methods.h"

#define RECENT_LINK offsetof(Block, recent)

void weir_set_fragments(Core *core, uint32_t id, long fragments) {
    Block *block = &core->blocks[id];
    if (block->fragments != fragments) weir_resize(core, id, (int32_t)fragments);
    if (block->mq_at || block->lirs_at || block->arc_at) return;
    int64_t part = fragments * core->capacity_blocks;
    block->size = !core->capacity_slots ? 1 : part > core->capacity_slots ? part : core->capacity_slots;
}

static void begin(Core *core, uint32_t id, uint32_t parent, int is_last) {
    Block *block = &core->blocks[id];
    if (parent != NONE) core->blocks[parent].children++;
    block->parent = parent;
    block->is_known = 1;
    block->is_last = (uint8_t)is_last;
    block->count = block->served = 0;
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

/* Ask all experts; the holders, and whether it is in the pool. */
static PyObject *ask_all(Core *core, uint32_t id, uint32_t times) {
    Block *block = &core->blocks[id];
    int pool_bit = 1 << core->experts, everyone = pool_bit - 1;
    int had = block->holders | (block->is_in_pool ? pool_bit : 0);
    block->served = had & (block->parent == NONE ? everyone | pool_bit : core->blocks[block->parent].served);
    double saved_s = times * core->seconds[block->place];
    core->asked_s += saved_s;
    if (block->served & pool_bit) core->pool_s += saved_s;
    if (block->served & everyone) core->gains[block->served & everyone] += saved_s;
    weir_ask_learned(core, id, times);
    uint8_t holders = block->is_held ? LEARNED : 0;
    if (core->experts > 1) {
        weir_ask_mq(core, id);
        weir_ask_lirs(core, id);
        weir_ask_arc(core, id);
        holders |= MQ | LIRS | ARC;
    }
    weir_put(core, id, holders);
    return PyLong_FromLong(block->is_in_pool ? -1 : holders);
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
