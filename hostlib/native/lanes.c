/* What hostlib/lane.py does for each request that is sent or answered, for many of one lane at once. The rules are
   those of Lane.take, Lane.settle and RoundTrips.measure, in the same order and the same arithmetic. */
#include "layout.h"

#include <math.h>

enum { UNSHARED = 2 };
static const double SHRINK = 0.2;

static struct {
    PyObject *done, *first_sent_s, *sent_s, *timeout_s, *tries, *popleft;
    PyObject *window, *shared, *in_flight, *waiting, *heard_s, *backlog_s, *options, *trips;
    PyObject *max_timeout_s, *merged_backlog_ms, *target_backlog_ms, *max_window, *min_window, *opened_window;
    PyObject *opening, *trips_heard_s, *first_heard_s, *learned, *smoothed_s, *variance_s;
} names;

int weir_prepare_lanes(PyObject *module) {
    struct {
        PyObject **name;
        const char *text;
    } all[] = {
        {&names.done, "done"}, {&names.first_sent_s, "first_sent_s"}, {&names.sent_s, "sent_s"},
        {&names.timeout_s, "timeout_s"}, {&names.tries, "tries"}, {&names.popleft, "popleft"},
        {&names.window, "window"}, {&names.shared, "_shared"}, {&names.in_flight, "_in_flight"},
        {&names.waiting, "_waiting"}, {&names.heard_s, "_heard_s"}, {&names.backlog_s, "_backlog_s"},
        {&names.options, "_options"}, {&names.trips, "_trips"}, {&names.max_timeout_s, "max_timeout_s"},
        {&names.merged_backlog_ms, "merged_backlog_ms"}, {&names.target_backlog_ms, "target_backlog_ms"},
        {&names.max_window, "max_window"}, {&names.min_window, "min_window"}, {&names.trips_heard_s, "heard_s"},
        {&names.opened_window, "opened_window"}, {&names.opening, "_opening"},
        {&names.first_heard_s, "_first_heard_s"}, {&names.learned, "learned"},
        {&names.smoothed_s, "smoothed_s"}, {&names.variance_s, "variance_s"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((*all[i].name = PyUnicode_InternFromString(all[i].text)) == NULL) return -1;
    PyObject *shrink = PyFloat_FromDouble(SHRINK);
    int failed = shrink == NULL || PyModule_AddObjectRef(module, "SHRINK", shrink);
    Py_XDECREF(shrink);
    return failed || PyModule_AddIntConstant(module, "UNSHARED", UNSHARED);
}

/* A number; -1 with an exception, which the caller looks for once behind several. */
static double get_number(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    double number = PyFloat_AsDouble(value);
    Py_DECREF(value);
    return number;
}

static int set_number(PyObject *object, PyObject *name, double number) {
    PyObject *value = PyFloat_FromDouble(number);
    if (value == NULL) return -1;
    int failed = PyObject_SetAttr(object, name, value);
    Py_DECREF(value);
    return failed;
}

static int set_count(PyObject *object, PyObject *name, long long count) {
    PyObject *value = PyLong_FromLongLong(count);
    if (value == NULL) return -1;
    int failed = PyObject_SetAttr(object, name, value);
    Py_DECREF(value);
    return failed;
}

static PyObject *get_dict(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value != NULL && !PyDict_CheckExact(value)) {
        PyErr_Format(PyExc_TypeError, "%U is no dictionary", name);
        Py_CLEAR(value);
    }
    return value;
}

static int stamp(PyObject *request, PyObject *in_flight, PyObject *now, double timeout_s, double most_s) {
    long long tries = (long long)get_number(request, names.tries);
    if (tries < 0) return -1;
    if (tries > 0)
        timeout_s *= (double)(1 << (tries < 8 ? tries : 8));
    else if (PyObject_SetAttr(request, names.first_sent_s, now))
        return -1;
    return PyObject_SetAttr(request, names.sent_s, now) ||
           set_number(request, names.timeout_s, timeout_s < most_s ? timeout_s : most_s) ||
           PyDict_SetItem(in_flight, request, Py_None);
}

/* take(lane, now_s, room, timeout_s) -> requests that wait, at most `room`, as sent now */
PyObject *weir_take(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *lane, *now;
    Py_ssize_t room;
    double timeout_s;
    if (!PyArg_ParseTuple(arguments, "OO!nd", &lane, &PyFloat_Type, &now, &room, &timeout_s)) return NULL;
    PyObject *options = PyObject_GetAttr(lane, names.options);
    double most_s = options == NULL ? -1 : get_number(options, names.max_timeout_s);
    Py_XDECREF(options);
    if (PyErr_Occurred()) return NULL;
    PyObject *waiting = PyObject_GetAttr(lane, names.waiting), *in_flight = get_dict(lane, names.in_flight);
    PyObject *taken = waiting == NULL || in_flight == NULL ? NULL : PyList_New(0);
    while (taken != NULL && PyList_GET_SIZE(taken) < room) {
        Py_ssize_t left = PyObject_Size(waiting);
        if (left == 0) break;
        PyObject *request = left < 0 ? NULL : PyObject_CallMethodNoArgs(waiting, names.popleft);
        PyObject *done = request == NULL ? NULL : PyObject_GetAttr(request, names.done);
        int failed = done == NULL;
        if (done == Py_False)
            failed = stamp(request, in_flight, now, timeout_s, most_s) || PyList_Append(taken, request);
        Py_XDECREF(done);
        Py_XDECREF(request);
        if (failed) Py_CLEAR(taken);
    }
    Py_XDECREF(waiting);
    Py_XDECREF(in_flight);
    return taken;
}

typedef struct {
    double max_timeout_s, merged_backlog_ms, target_backlog_ms, max_window, min_window, opened_window; /* options */
    double window, backlog_s, now_s;
    long long shared;
    PyObject *trips;
    double smoothed_s, variance_s, first_heard_s;
    int heard, learned, measured, was_heard, opening;
} Lane;

static int read_lane(Lane *lane, PyObject *object) {
    PyObject *options = PyObject_GetAttr(object, names.options);
    if (options == NULL) return -1;
    lane->max_timeout_s = get_number(options, names.max_timeout_s);
    lane->merged_backlog_ms = get_number(options, names.merged_backlog_ms);
    lane->target_backlog_ms = get_number(options, names.target_backlog_ms);
    lane->max_window = get_number(options, names.max_window);
    lane->min_window = get_number(options, names.min_window);
    lane->opened_window = get_number(options, names.opened_window);
    Py_DECREF(options);
    if (PyErr_Occurred()) return -1;
    lane->window = get_number(object, names.window);
    lane->shared = (long long)get_number(object, names.shared);
    PyObject *opening = PyObject_GetAttr(object, names.opening);
    lane->opening = opening == Py_True;
    Py_XDECREF(opening);
    lane->trips = PyObject_GetAttr(object, names.trips);
    if (lane->trips == NULL) return -1;
    lane->smoothed_s = get_number(lane->trips, names.smoothed_s);
    lane->variance_s = get_number(lane->trips, names.variance_s);
    PyObject *learned = PyObject_GetAttr(lane->trips, names.learned);
    lane->learned = learned == Py_True;
    Py_XDECREF(learned);
    PyObject *first = PyObject_GetAttr(lane->trips, names.first_heard_s);
    lane->was_heard = first != NULL && first != Py_None;
    if (lane->was_heard) lane->first_heard_s = PyFloat_AsDouble(first);
    Py_XDECREF(first);
    return PyErr_Occurred() ? -1 : 0;
}

static int write_lane(const Lane *lane, PyObject *object, PyObject *now) {
    if (lane->heard && (PyObject_SetAttr(object, names.heard_s, now) ||
                        set_number(object, names.backlog_s, lane->backlog_s)))
        return -1;
    if (set_number(object, names.window, lane->window) || set_count(object, names.shared, lane->shared)) return -1;
    if (PyObject_SetAttr(object, names.opening, lane->opening ? Py_True : Py_False)) return -1;
    if (!lane->measured) return 0;
    PyObject *trips = lane->trips;
    return PyObject_SetAttr(trips, names.trips_heard_s, now) ||
           (!lane->was_heard && PyObject_SetAttr(trips, names.first_heard_s, now)) ||
           PyObject_SetAttr(trips, names.learned, lane->learned ? Py_True : Py_False) ||
           set_number(trips, names.smoothed_s, lane->smoothed_s) ||
           set_number(trips, names.variance_s, lane->variance_s);
}

static void measure(Lane *lane, double sent_s) {
    double first_heard_s = lane->was_heard ? lane->first_heard_s : lane->now_s;
    lane->measured = 1;
    lane->learned = lane->learned || sent_s >= first_heard_s;
    double sample_s = lane->now_s - sent_s;
    if (lane->smoothed_s == 0) {
        lane->smoothed_s = sample_s;
        lane->variance_s = sample_s / 2;
        return;
    }
    lane->variance_s += (fabs(lane->smoothed_s - sample_s) - lane->variance_s) / 4;
    lane->smoothed_s += (sample_s - lane->smoothed_s) / 8;
}

/* Lane._open */
static int open_window(Lane *lane) {
    double most = lane->opened_window < lane->max_window ? lane->opened_window : lane->max_window;
    if (!lane->opening || lane->window >= most) return 0;
    lane->window += 1;
    return 1;
}

static void adjust(Lane *lane, double backlog_ms) {
    if (backlog_ms <= lane->target_backlog_ms) {
        if (open_window(lane)) return;
        double larger = lane->window + 1 / lane->window;
        lane->window = larger < lane->max_window ? larger : lane->max_window;
    } else {
        lane->opening = 0;
        double smaller = lane->window - SHRINK;
        lane->window = smaller > lane->min_window ? smaller : lane->min_window;
    }
}

/* One answer; `backlog_ms` below 0: nothing is said of the home. 0, or -1 with an exception. */
static int settle(Lane *lane, PyObject *in_flight, PyObject *request, double backlog_ms, int merged) {
    if (PyObject_SetAttr(request, names.done, Py_True)) return -1;
    if (backlog_ms >= 0) {
        double backlog_s = backlog_ms / 1000;
        lane->heard = 1;
        lane->backlog_s = backlog_s < lane->max_timeout_s ? backlog_s : lane->max_timeout_s;
    }
    int is_in_flight = PyDict_Contains(in_flight, request);
    if (is_in_flight <= 0) return is_in_flight;
    if (PyDict_DelItem(in_flight, request)) return -1;
    if (backlog_ms < 0) {
        open_window(lane);
        return 0;
    }
    if (!merged) {
        lane->shared = lane->shared > UNSHARED ? lane->shared - UNSHARED : 0;
        adjust(lane, backlog_ms);
    } else if (backlog_ms <= lane->merged_backlog_ms) {
        lane->shared++;
    }
    double tries = get_number(request, names.tries), sent_s = get_number(request, names.sent_s);
    if (PyErr_Occurred()) return -1;
    if (tries == 0) measure(lane, sent_s);
    return 0;
}

/* settle(lane, requests, now_s, backlogs in ms or None, merged): as Lane.settle for each, in this order */
PyObject *weir_settle(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *requests, *now, *backlogs;
    int merged;
    if (!PyArg_ParseTuple(arguments, "OO!O!Op", &object, &PyList_Type, &requests, &PyFloat_Type, &now, &backlogs,
                          &merged))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(requests);
    if (backlogs != Py_None && (!PyList_CheckExact(backlogs) || PyList_GET_SIZE(backlogs) != count))
        return PyErr_Format(PyExc_ValueError, "there is not one backlog for each request");
    Lane lane = {.now_s = PyFloat_AS_DOUBLE(now)};
    PyObject *in_flight = get_dict(object, names.in_flight);
    int failed = in_flight == NULL || read_lane(&lane, object);
    for (Py_ssize_t i = 0; !failed && i < count && i < PyList_GET_SIZE(requests); i++) {
        double backlog_ms = -1;
        if (backlogs != Py_None) {
            backlog_ms = PyFloat_AsDouble(PyList_GET_ITEM(backlogs, i));
            if (PyErr_Occurred()) failed = 1;
        }
        PyObject *request = Py_NewRef(PyList_GET_ITEM(requests, i));
        failed = failed || settle(&lane, in_flight, request, backlog_ms, merged);
        Py_DECREF(request);
    }
    failed = failed || write_lane(&lane, object, now);
    Py_XDECREF(in_flight);
    Py_XDECREF(lane.trips);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
