/* Which experts hold what, the pool by that, and what leaves it first. */
#include "core.h"
#include "methods.h"

#define POOL_LINK offsetof(Block, pool)

void weir_put(Core *core, uint32_t id, uint8_t holders) {
    Block *block = &core->blocks[id];
    if (block->is_in_pool) {
        list_cut(core, &core->sets[block->holders], POOL_LINK, id);
        list_add(core, &core->sets[holders], POOL_LINK, id);
    }
    block->holders = holders;
}

void weir_let_go(Core *core, uint32_t id, int bit) {
    weir_put(core, id, core->blocks[id].holders & (uint8_t)~bit);
    weir_free_if_unused(core, id);
}

PyObject *weir_core_set_order(PyObject *self, PyObject *order) {
    Core *core = (Core *)self;
    if (!PyList_Check(order) || PyList_GET_SIZE(order) != 1 << core->experts)
        return PyErr_Format(PyExc_ValueError, "an order has every set of experts once");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); i++) {
        long set = PyLong_AsLong(PyList_GET_ITEM(order, i));
        if (set < 0 || set >= 1 << core->experts) return PyErr_Format(PyExc_ValueError, "no such set of experts");
        core->order[i] = (int)set;
    }
    Py_RETURN_NONE;
}

PyObject *weir_core_enter(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find_or_make(core, key);
    if (id == NONE) return NULL;
    Block *block = &core->blocks[id];
    if (!block->is_in_pool) {
        if (!block->fragments) weir_set_fragments(core, id, 1);
        block->is_in_pool = 1;
        core->pool_blocks++;
        list_add(core, &core->sets[block->holders], POOL_LINK, id);
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
    list_cut(core, &core->sets[core->blocks[id].holders], POOL_LINK, id);
    core->blocks[id].is_in_pool = 0;
    core->pool_blocks--;
    weir_free_if_unused(core, id);
    Py_RETURN_NONE;
}

/* The first so many blocks of the pool by votes, each with its holders. */
PyObject *weir_core_least(PyObject *self, PyObject *most) {
    Core *core = (Core *)self;
    long left = PyLong_AsLong(most);
    if (PyErr_Occurred()) return NULL;
    PyObject *found = PyList_New(0);
    for (int i = 0; found != NULL && i < 1 << core->experts; i++)
        for (uint32_t id = core->sets[core->order[i]].head; id != NONE && left > 0; left--) {
            PyObject *pair = Py_BuildValue("(Oi)", core->blocks[id].key, core->order[i]);
            if (pair == NULL || PyList_Append(found, pair)) {
                Py_XDECREF(pair);
                Py_DECREF(found);
                return NULL;
            }
            Py_DECREF(pair);
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
