/* Slots of Python's objects, read and written in place: an attribute by name costs several times as much. */
#include "layout.h"

#include <structmember.h>

int weir_learn_slots(Slots *slots, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_ssize_t offsets[MOST_SLOTS] = {0};
    for (int i = 0; slots->names[i] != NULL; i++) {
        PyObject *member = PyObject_GetAttrString((PyObject *)type, slots->names[i]);
        if (member == NULL) return -1;
        int is_slot = Py_IS_TYPE(member, &PyMemberDescr_Type) &&
                      PyType_IsSubtype(type, ((PyMemberDescrObject *)member)->d_common.d_type) &&
                      ((PyMemberDescrObject *)member)->d_member->type == T_OBJECT_EX;
        if (is_slot) offsets[i] = ((PyMemberDescrObject *)member)->d_member->offset;
        Py_DECREF(member);
        if (!is_slot) {
            PyErr_Format(PyExc_TypeError, "%s has no slot %s", type->tp_name, slots->names[i]);
            return -1;
        }
    }
    memcpy(slots->offsets, offsets, sizeof offsets);
    PyTypeObject *before = slots->type;
    slots->type = (PyTypeObject *)Py_NewRef(type);
    Py_XDECREF(before);
    return 0;
}

long long weir_number_in(const Slots *slots, PyObject *object, int which) {
    PyObject *value = slot_of(slots, object, which);
    if (value == NULL) {
        PyErr_Format(PyExc_AttributeError, "%s is not set", slots->names[which]);
        return -1;
    }
    long long number = PyLong_AsLongLong(value);
    if (number < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%s is negative", slots->names[which]);
    return number;
}
