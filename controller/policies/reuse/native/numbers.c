/* Blocks are numbers: by key, and free again once nothing is known of them. */
#include "core.h"

uint32_t weir_find(Core *core, PyObject *key) {
    PyObject *id = PyDict_GetItemWithError(core->ids, key);
    return id == NULL ? NONE : (uint32_t)PyLong_AsUnsignedLong(id);
}

uint32_t weir_find_or_make(Core *core, PyObject *key) {
    uint32_t id = weir_find(core, key);
    if (id != NONE || PyErr_Occurred()) return id;
    if (core->free != NONE) {
        id = core->free;
    } else {
        if (core->made == core->room) {
            uint32_t room = core->room ? 2 * core->room : 1024;
            Block *blocks = room < NONE / 2 ? realloc(core->blocks, room * sizeof *blocks) : NULL;
            if (blocks == NULL) return PyErr_NoMemory(), NONE;
            core->blocks = blocks;
            core->room = room;
        }
        id = core->made;
    }
    PyObject *number = PyLong_FromUnsignedLong(id);
    if (number == NULL) return NONE;
    int failed = PyDict_SetItem(core->ids, key, number);
    Py_DECREF(number);
    if (failed) return NONE;
    Block *block = &core->blocks[id];
    if (id == core->free)
        core->free = block->parent;
    else
        core->made++;
    memset(block, 0, sizeof *block);
    block->key = Py_NewRef(key);
    block->parent = block->last_child = NONE;
    return id;
}

/* Free a number if nothing is known of its block. Such a block has no parent (weir_forget). */
void weir_free_if_unused(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    if (block->is_known || block->is_in_pool || block->is_held || block->children) return;
    PyObject *key = block->key;
    if (PyDict_DelItem(core->ids, key)) PyErr_Clear();
    block->key = NULL;
    block->parent = core->free;
    core->free = id;
    Py_DECREF(key);
}

/* A block is not known any more, and names no parent: else those before it would be remembered for as long as others
   name it, without a bound where chains are endless or blocks name one another. */
void weir_forget(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    uint32_t parent = block->parent;
    block->is_known = 0;
    block->parent = NONE;
    core->known--;
    if (parent != NONE) {
        core->blocks[parent].children--;
        weir_free_if_unused(core, parent);
    }
    weir_free_if_unused(core, id);
}
