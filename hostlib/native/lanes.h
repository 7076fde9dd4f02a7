/* What files that read a hostlib.client.lane.Lane share: names of attributes, and how to get at them. */
#ifndef WEIR_LANES_H
#define WEIR_LANES_H

#include "layout.h"

typedef struct {
    PyObject *popleft, *extend, *home, *window, *shared, *in_flight, *waiting, *heard_s, *backlog_s,
    *options, *trips, *max_timeout_s, *merged_backlog_ms, *target_backlog_ms, *max_window, *min_window,
    *opened_window, *opening, *trips_heard_s, *first_heard_s, *learned, *smoothed_s, *variance_s;
} LaneNames;

extern LaneNames weir_names;

/* A number; -1 with an exception, which the caller looks for once behind several. */
static inline double get_number(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    double number = PyFloat_AsDouble(value);
    Py_DECREF(value);
    return number;
}

static inline PyObject *get_dict(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value != NULL && !PyDict_CheckExact(value)) {
        PyErr_Format(PyExc_TypeError, "%U is no dictionary", name);
        Py_CLEAR(value);
    }
    return value;
}

#endif
