/* The compiled core of the hosts: see hostlib/native/__init__.py. */
#include "lanes.h"

static PyMethodDef methods[] = {
    {"receive", weir_receive, METH_VARARGS, NULL},
    {"send", weir_send, METH_VARARGS, NULL},
    {"total", weir_total, METH_O, NULL},
    {"serve_gets", weir_serve_gets, METH_VARARGS, NULL},
    {"new_requests", weir_new_requests, METH_VARARGS, NULL},
    {"encode_gets", weir_encode_gets, METH_VARARGS, NULL},
    {"take_values", weir_take_values, METH_VARARGS, NULL},
    {"encode_puts", weir_encode_puts, METH_VARARGS, NULL},
    {"take_acks", weir_take_acks, METH_VARARGS, NULL},
    {"put_run", weir_put_run, METH_VARARGS, NULL},
    {"keep", weir_keep, METH_VARARGS, NULL},
    {"join", weir_join, METH_VARARGS, NULL},
    {"encode_acks", weir_encode_acks, METH_VARARGS, NULL},
    {"copy", weir_copy, METH_O, NULL},
    {"drop", weir_drop, METH_O, NULL},
    {"tag_state", weir_tag_state, METH_O, NULL},
    {"tags", weir_tags_of, METH_VARARGS, NULL},
    {"crc32", weir_crc32_of, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static const struct {
    const char *name;
    int value;
} constants[] = {
    {"KV_VERSION", VERSION}, {"KV_HEADER_BYTES", HEADER_BYTES}, {"VALUE_BYTES", VALUE_BYTES}, {"LIST_BYTES", LIST_BYTES},
    {"TAG_BYTES", TAG_BYTES}, {"KEY_BYTES", KEY_BYTES}, {"OP_GET", OP_GET}, {"OP_VALUE", OP_VALUE},
    {"OP_PUT", OP_PUT}, {"OP_PUT_ACK", OP_PUT_ACK}, {"OP_REFUSED", OP_REFUSED}, {"FLAG_HELD", FLAG_HELD},
    {"COMPLETE", COMPLETE}, {"LEARNED", LEARNED}, {"UNSHARED", UNSHARED},
    {"is_compiled", 1},
    {"FLAG_RETRY", FLAG_RETRY}, {"FLAG_BYPASS", FLAG_BYPASS}, {"FLAG_FROM_POOL", FLAG_FROM_POOL},
    {"FLAG_MERGED", FLAG_MERGED}, {"FLAG_FILL", FLAG_FILL}, {"FLAG_REPAIR", FLAG_REPAIR},
    {"MAX_FRAGMENTS", MOST_FRAGMENTS}, {"AT_recompute_ms", AT_RECOMPUTE_MS}, {"AT_depth", AT_DEPTH},
    {"AT_chain_blocks", AT_CHAIN_BLOCKS}, {"AT_parent", AT_PARENT}, {"AT_version", AT_VERSION}, {"AT_op", AT_OP},
    {"AT_flags", AT_FLAGS}, {"AT_backlog_ms", AT_BACKLOG_MS}, {"AT_sequence", AT_SEQUENCE},
    {"AT_generation", AT_GENERATION}, {"AT_home_1", AT_HOMES}, {"AT_epoch", AT_EPOCH},
    {"AT_checksum", AT_CHECKSUM}, {"AT_tenant", AT_TENANT}, {"AT_fragment", AT_FRAGMENT},
    {"AT_fragments", AT_FRAGMENTS}, {"AT_value_bytes", AT_VALUE_BYTES}, {"AT_content", AT_CONTENT},
    {"AT_key", AT_KEY}, {"AT_tag", AT_TAG},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "weir_native", .m_size = -1, .m_methods = methods,
};

static int add_class(PyObject *module, const char *name, PyTypeObject *class) {
    return PyType_Ready(class) || PyModule_AddObjectRef(module, name, (PyObject *)class);
}

static int add_classes(PyObject *module) {
    PyObject *shrink = PyFloat_FromDouble(WEIR_SHRINK);
    int failed = shrink == NULL || PyModule_AddObjectRef(module, "SHRINK", shrink) ||
                 PyModule_AddStringConstant(module, "POOL", WEIR_POOL) ||
                 add_class(module, "Request", &weir_request_type) ||
                 add_class(module, "RoundTrips", &weir_round_trips_type) ||
                 add_class(module, "Lane", &weir_lane_type);
    Py_XDECREF(shrink);
    return failed;
}

PyMODINIT_FUNC PyInit_weir_native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    int failed = weir_prepare_crc() || weir_prepare_tags() || weir_prepare_answers() || add_classes(module);
    for (size_t i = 0; !failed && i < sizeof constants / sizeof *constants; i++)
        failed = PyModule_AddIntConstant(module, constants[i].name, constants[i].value);
    if (failed) Py_CLEAR(module);
    return module;
}
