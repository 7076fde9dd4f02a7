/* What the core says of a block, and of what it remembers. */
#include "core.h"
#include "methods.h"

PyObject *weir_core_is_wanted(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(id != NONE && core->blocks[id].is_held);
}

PyObject *weir_core_chance(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    if (id == NONE || !core->blocks[id].is_known) Py_RETURN_NONE;
    const Block *block = &core->blocks[id];
    return PyFloat_FromDouble(core->chance[block->kind][bucket(core, core->tick - block->tick)]);
}

/* Times asked for, ticks since, place, value, key of the parent, whether that is held; None if not known. */
PyObject *weir_core_facts(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = weir_find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    if (id == NONE || !core->blocks[id].is_known) Py_RETURN_NONE;
    const Block *block = &core->blocks[id];
    const Block *parent = block->parent == NONE ? NULL : &core->blocks[block->parent];
    return Py_BuildValue("(IiIdOO)", block->count, core->tick - block->tick, block->place, weir_value(core, id),
                         parent == NULL ? Py_None : parent->key,
                         parent != NULL && parent->is_held ? Py_True : Py_False);
}

PyObject *weir_core_cheapest(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    double value = 0.0;
    if (weir_fits(core, 1) || weir_cheapest(core, &value) == NONE) Py_RETURN_NONE;
    return PyFloat_FromDouble(value);
}

PyObject *weir_core_known(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((Core *)self)->known);
}

/* Numbers given out; a test asks. */
PyObject *weir_core_made(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((Core *)self)->made);
}
