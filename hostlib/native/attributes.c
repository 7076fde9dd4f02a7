/* Attributes of Python's objects, by their public names. */
#include "layout.h"

static PyObject *name_of(Attributes *attributes, int which) {
    PyObject **name = &attributes->interned[which];
    if (*name == NULL) *name = PyUnicode_InternFromString(attributes->names[which]);
    return *name;
}

PyObject *weir_attribute(Attributes *attributes, PyObject *object, int which) {
    PyObject *name = name_of(attributes, which), *value = name == NULL ? NULL : PyObject_GetAttr(object, name);
    if (value == NULL) return NULL;
    if (Py_REFCNT(value) > 1) { /* the object has it, too */
        Py_DECREF(value);
        return value;
    }
    Py_DECREF(value);
    return PyErr_Format(PyExc_TypeError, "%s is computed", attributes->names[which]);
}

int weir_set_attribute(Attributes *attributes, PyObject *object, int which, PyObject *value) {
    PyObject *name = value == NULL ? NULL : name_of(attributes, which);
    int failed = name == NULL || PyObject_SetAttr(object, name, value);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

long long weir_number(Attributes *attributes, PyObject *object, int which) {
    PyObject *value = weir_attribute(attributes, object, which);
    long long number = value == NULL ? -1 : PyLong_AsLongLong(value);
    if (number < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%s is negative", attributes->names[which]);
    return number;
}

int weir_set_number(Attributes *attributes, PyObject *object, int which, long long number) {
    return weir_set_attribute(attributes, object, which, PyLong_FromLongLong(number));
}
