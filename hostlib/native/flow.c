/* The rules of hostlib/native/flow_window.py, for single fragments, and RoundTrips of hostlib/native/lane.py, in the
   same order and the same arithmetic. */
#include "lanes.h"

#include <math.h>
#include <structmember.h>

double weir_get_number(PyObject *object, const char *name) {
    PyObject *value = PyErr_Occurred() ? NULL : PyObject_GetAttrString(object, name);
    if (value == NULL) return -1;
    double number = PyFloat_AsDouble(value);
    Py_DECREF(value);
    return number;
}

int weir_begin_flow(FlowWindow *flow, PyObject *options) {
    double opened = weir_get_number(options, "opened_window");
    *flow = (FlowWindow){
        .initial = weir_get_number(options, "initial_window"), .least = weir_get_number(options, "min_window"),
        .most = weir_get_number(options, "max_window"),
        .target_backlog_ms = weir_get_number(options, "target_backlog_ms"),
        .merged_backlog_ms = weir_get_number(options, "merged_backlog_ms"),
        .idle_s = weir_get_number(options, "min_timeout_s"), .opening = 1,
    };
    flow->window = flow->initial;
    flow->most_open = opened < flow->most ? opened : flow->most;
    return PyErr_Occurred() ? -1 : 0;
}

long long weir_allowed(const FlowWindow *flow) {
    long long allowed = (long long)flow->window + flow->shared;
    return allowed < (long long)flow->most ? allowed : (long long)flow->most;
}

static int open_window(FlowWindow *flow) {
    if (!flow->opening || flow->window >= flow->most_open) return 0;
    flow->window = flow->window + 1 < flow->most_open ? flow->window + 1 : flow->most_open;
    return 1;
}

static void shrink(FlowWindow *flow) {
    double smaller = flow->window - WEIR_SHRINK;
    flow->window = smaller > flow->least ? smaller : flow->least;
}

void weir_answered(FlowWindow *flow, double now_s, double backlog_ms, int merged) {
    if (backlog_ms < 0) {
        open_window(flow);
        return;
    }
    flow->heard_s = now_s;
    if (merged) {
        flow->shared += backlog_ms <= flow->merged_backlog_ms;
        return;
    }
    flow->shared = flow->shared > UNSHARED ? flow->shared - UNSHARED : 0;
    if (backlog_ms > flow->target_backlog_ms) {
        flow->opening = 0;
        shrink(flow);
    } else if (!open_window(flow) && flow->window < flow->most) {
        double larger = flow->window + 1 / flow->window;
        flow->window = larger < flow->most ? larger : flow->most;
    }
}

void weir_feel(FlowWindow *flow, double backlog_ms) {
    if (backlog_ms > flow->target_backlog_ms) shrink(flow);
}

void weir_halve(FlowWindow *flow) {
    flow->window = flow->window / 2 > flow->least ? flow->window / 2 : flow->least;
    flow->opening = 0;
}

int weir_restart(FlowWindow *flow, double now_s) {
    int aged = now_s - flow->heard_s >= flow->idle_s;
    if (aged) {
        flow->window = flow->initial;
        flow->opening = 1;
    }
    flow->heard_s = now_s;
    flow->shared = 0;
    return aged;
}

void weir_forget(RoundTrips *trips) {
    trips->smoothed_s = trips->variance_s = 0;
    trips->learned = trips->was_heard = 0;
}

void weir_measure(RoundTrips *trips, double sent_s, double now_s) {
    trips->heard_s = now_s;
    if (!trips->was_heard) {
        trips->was_heard = 1;
        trips->first_heard_s = now_s;
    }
    trips->learned = trips->learned || sent_s >= trips->first_heard_s;
    double sample_s = now_s - sent_s;
    if (trips->smoothed_s == 0) {
        trips->smoothed_s = sample_s;
        trips->variance_s = sample_s / 2;
        return;
    }
    trips->variance_s += (fabs(trips->smoothed_s - sample_s) - trips->variance_s) / 4;
    trips->smoothed_s += (sample_s - trips->smoothed_s) / 8;
}

static PyMemberDef trips_members[] = {
    {"smoothed_s", T_DOUBLE, offsetof(RoundTrips, smoothed_s), READONLY, NULL},
    {"variance_s", T_DOUBLE, offsetof(RoundTrips, variance_s), READONLY, NULL},
    {"heard_s", T_DOUBLE, offsetof(RoundTrips, heard_s), READONLY, NULL},
    {"learned", T_BOOL, offsetof(RoundTrips, learned), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject weir_round_trips_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "weir_native.RoundTrips", .tp_basicsize = sizeof(RoundTrips),
    .tp_flags = Py_TPFLAGS_DEFAULT, .tp_members = trips_members, .tp_new = PyType_GenericNew,
};
