/* The pool, and what leaves it first: what is not held, of that what was asked for or let go longest ago. */
#include "core.h"
#include "methods.h"

#define POOL_LINK offsetof(Block, pool)

void weir_hold(Core *core, uint32_t id, int is_held) {
    Block *block = &core->blocks[id];
    if (block->is_in_pool) {
        list_cut(core, &core->sets[block->is_held], POOL_LINK, id);
        list_add(core, &core->sets[is_held], POOL_LINK, id);
    }
    block->is_held = (uint8_t)is_held;
}

void weir_touch(Core *core, uint32_t id) { weir_hold(core, id, core->blocks[id].is_held); }

PyObject *weir_core_enter(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find_or_make(core, key);
    if (id == NONE) return NULL;
    Block *block = &core->blocks[id];
    if (!block->is_in_pool) {
        if (!block->fragments) weir_set_fragments(core, id, 1);
        block->is_in_pool = 1;
        core->pool_blocks++;
        list_add(core, &core->sets[block->is_held], POOL_LINK, id);
    }
    Py_RETURN_NONE;
}

PyObject *weir_core_leave(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find(core, key);
    if (id == NONE || !core->blocks[id].is_in_pool) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
        return NULL;
    }
    list_cut(core, &core->sets[core->blocks[id].is_held], POOL_LINK, id);
    core->blocks[id].is_in_pool = 0;
    core->pool_blocks--;
    weir_free_if_unused(core, id);
    Py_RETURN_NONE;
}

/* So many blocks of the pool at most, those that leave first first. */
PyObject *weir_core_least(PyObject *self, PyObject *most) {
    Core *core = (Core *)self;
    long left = PyLong_AsLong(most);
    if (PyErr_Occurred()) return NULL;
    PyObject *found = PyList_New(0);
    for (int is_held = 0; found != NULL && is_held < 2; is_held++)
        for (uint32_t id = core->sets[is_held].head; id != NONE && left > 0; left--) {
            if (PyList_Append(found, core->blocks[id].key)) {
                Py_DECREF(found);
                return NULL;
            }
            id = core->blocks[id].pool.behind;
        }
    return found;
}

int weir_core_contains(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find(core, key);
    if (id == NONE) return PyErr_Occurred() ? -1 : 0;
    return core->blocks[id].is_in_pool;
}

Py_ssize_t weir_core_length(PyObject *self) { return (Py_ssize_t)((Core *)self)->pool_blocks; }
