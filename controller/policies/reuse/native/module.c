/* The compiled core of the policy: see controller/policies/reuse/native/__init__.py, which has its interface. */
#include <math.h>
#include "core.h"
#include "methods.h"

static void list_clear(List *list) { list->head = list->tail = NONE; }

static int core_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"capacity_blocks", "capacity_slots", "remembered", "hurdle", "prefix", NULL};
    Core *core = (Core *)self;
    long long blocks, slots;
    unsigned int remembered;
    int prefix;
    double hurdle;
    if (core->ids != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "made already");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LLIdp", names, &blocks, &slots, &remembered, &hurdle, &prefix))
        return -1;
    if (blocks < 1 || slots < 0) {
        PyErr_SetString(PyExc_ValueError, "capacities that cannot be");
        return -1;
    }
    core->capacity_blocks = blocks;
    core->capacity_slots = slots;
    core->room_blocks = blocks;
    core->room_slots = slots;
    core->remembered = remembered;
    core->hurdle = hurdle;
    core->is_prefix = prefix;
    core->free = NONE;
    weir_prepare_buckets(core);
    for (int step = 0; step < 2 * MAX_STEPS; step++)
        core->worth_of_step[step] = pow(2.0, (double)(step - MAX_STEPS) / STEPS_PER_OCTAVE);
    for (int i = 0; i < COLUMNS; i++) list_clear(&core->columns[i]);
    for (int i = 0; i < 2; i++) list_clear(&core->sets[i]);
    list_clear(&core->recent);
    core->tracked = calloc(TRACKED_TICKS, sizeof *core->tracked);
    core->ids = PyDict_New();
    if (core->tracked == NULL) PyErr_NoMemory();
    return core->tracked == NULL || core->ids == NULL ? -1 : 0;
}

static void core_dealloc(PyObject *self) {
    Core *core = (Core *)self;
    for (uint32_t id = 0; id < core->made; id++) Py_XDECREF(core->blocks[id].key);
    free(core->blocks);
    free(core->tracked);
    free(core->seconds);
    free(core->steps);
    Py_XDECREF(core->ids);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *core_resize(PyObject *self, PyObject *args) {
    Core *core = (Core *)self;
    long long blocks, slots;
    if (!PyArg_ParseTuple(args, "LL", &blocks, &slots)) return NULL;
    if (blocks < 1 || slots < 0 || !slots != !core->capacity_slots)
        return PyErr_Format(PyExc_ValueError, "capacities that cannot be");
    core->room_blocks = blocks;
    core->room_slots = slots;
    weir_shrink(core);
    Py_RETURN_NONE;
}

static PyObject *core_end_tick(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    weir_end_tick(core);
    return PyLong_FromLongLong(core->reused);
}

static PyObject *core_set_worths(PyObject *self, PyObject *args) {
    Core *core = (Core *)self;
    PyObject *seconds, *steps;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &seconds, &PyList_Type, &steps)) return NULL;
    Py_ssize_t places = PyList_GET_SIZE(seconds);
    if (places < core->places || places != PyList_GET_SIZE(steps))
        return PyErr_Format(PyExc_ValueError, "places are added, not taken away");
    if (places > core->places) {
        double *more = realloc(core->seconds, (size_t)places * sizeof *more);
        if (more == NULL) return PyErr_NoMemory();
        core->seconds = more;
        int32_t *more_steps = realloc(core->steps, (size_t)places * sizeof *more_steps);
        if (more_steps == NULL) return PyErr_NoMemory();
        core->steps = more_steps;
        core->places = places;
    }
    for (Py_ssize_t i = 0; i < places; i++) {
        core->seconds[i] = PyFloat_AsDouble(PyList_GET_ITEM(seconds, i));
        core->steps[i] = (int32_t)PyLong_AsLong(PyList_GET_ITEM(steps, i));
    }
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *view(Core *core, double (*table)[BUCKETS]) {
    (void)core;
    return PyMemoryView_FromMemory((char *)table, sizeof(double) * CLASSES * BUCKETS, PyBUF_WRITE);
}

/* reuses, exposure, passed, index, chance: as bytes, valid as long as the core is. */
static PyObject *core_tables(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    return Py_BuildValue("(NNNNN)", view(core, core->reuses), view(core, core->exposure), view(core, core->passed),
                         view(core, core->index), view(core, core->chance));
}

static PyMethodDef methods[] = {
    {"ask", (PyCFunction)(void (*)(void))weir_core_ask, METH_FASTCALL, NULL},
    {"hits", (PyCFunction)(void (*)(void))weir_core_hits, METH_FASTCALL, NULL},
    {"give_up", weir_core_give_up, METH_O, NULL},
    {"resize", core_resize, METH_VARARGS, NULL},
    {"end_tick", core_end_tick, METH_NOARGS, NULL},
    {"set_worths", core_set_worths, METH_VARARGS, NULL},
    {"tables", core_tables, METH_NOARGS, NULL},
    {"enter", weir_core_enter, METH_O, NULL},
    {"leave", weir_core_leave, METH_O, NULL},
    {"least", weir_core_least, METH_O, NULL},
    {"is_wanted", weir_core_is_wanted, METH_O, NULL},
    {"chance", weir_core_chance, METH_O, NULL},
    {"facts", weir_core_facts, METH_O, NULL},
    {"cheapest_value", weir_core_cheapest, METH_NOARGS, NULL},
    {"known", weir_core_known, METH_NOARGS, NULL},
    {"made", weir_core_made, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew}, {Py_tp_init, core_init},        {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, methods},       {Py_sq_contains, weir_core_contains}, {Py_sq_length, weir_core_length},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weir_policy.Core", .basicsize = sizeof(Core), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .slots = slots,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "weir_policy", .m_size = -1};

PyMODINIT_FUNC PyInit_weir_policy(void) {
    PyObject *module = PyModule_Create(&definition), *type = module == NULL ? NULL : PyType_FromSpec(&spec);
    if (type == NULL || PyModule_AddObject(module, "Core", type)) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
