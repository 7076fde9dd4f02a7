/* What hostlib/client/lane.py does for each request that is answered, for many at once. The rules are those of
   Lane.settle and RoundTrips.measure, in the same order and the same arithmetic. */
#include "lanes.h"

#include <math.h>

enum { UNSHARED = 2 };
static const double SHRINK = 0.2;

LaneNames weir_names;

int weir_prepare_lanes(PyObject *module) {
    struct {
        PyObject **name;
        const char *text;
    } all[] = {
        {&weir_names.popleft, "popleft"}, {&weir_names.extend, "extend"}, {&weir_names.home, "home"},
        {&weir_names.window, "window"}, {&weir_names.shared, "_shared"}, {&weir_names.in_flight, "_in_flight"},
        {&weir_names.waiting, "_waiting"}, {&weir_names.heard_s, "_heard_s"}, {&weir_names.backlog_s, "_backlog_s"},
        {&weir_names.options, "_options"}, {&weir_names.trips, "_trips"},
        {&weir_names.max_timeout_s, "max_timeout_s"},
        {&weir_names.merged_backlog_ms, "merged_backlog_ms"}, {&weir_names.target_backlog_ms, "target_backlog_ms"},
        {&weir_names.max_window, "max_window"}, {&weir_names.min_window, "min_window"},
        {&weir_names.opened_window, "opened_window"}, {&weir_names.opening, "_opening"},
        {&weir_names.trips_heard_s, "heard_s"}, {&weir_names.first_heard_s, "_first_heard_s"},
        {&weir_names.learned, "learned"}, {&weir_names.smoothed_s, "smoothed_s"},
        {&weir_names.variance_s, "variance_s"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((*all[i].name = PyUnicode_InternFromString(all[i].text)) == NULL) return -1;
    PyObject *shrink = PyFloat_FromDouble(SHRINK);
    int failed = shrink == NULL || PyModule_AddObjectRef(module, "SHRINK", shrink);
    Py_XDECREF(shrink);
    return failed || PyModule_AddIntConstant(module, "UNSHARED", UNSHARED);
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

/* An attribute that is True; -1 with an exception. */
static int get_truth(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    int truth = value == Py_True;
    Py_DECREF(value);
    return truth;
}

static int read_trips(Trips *trips, PyObject *object) {
    trips->smoothed_s = get_number(object, weir_names.smoothed_s);
    trips->variance_s = get_number(object, weir_names.variance_s);
    trips->learned = get_truth(object, weir_names.learned);
    PyObject *first = PyObject_GetAttr(object, weir_names.first_heard_s);
    trips->was_heard = first != NULL && first != Py_None;
    if (trips->was_heard) trips->first_heard_s = PyFloat_AsDouble(first);
    Py_XDECREF(first);
    return PyErr_Occurred() ? -1 : 0;
}

static int write_trips(const Trips *trips, PyObject *now) {
    if (!trips->measured) return 0;
    PyObject *object = trips->object;
    return PyObject_SetAttr(object, weir_names.trips_heard_s, now) ||
           (!trips->was_heard && PyObject_SetAttr(object, weir_names.first_heard_s, now)) ||
           PyObject_SetAttr(object, weir_names.learned, trips->learned ? Py_True : Py_False) ||
           set_number(object, weir_names.smoothed_s, trips->smoothed_s) ||
           set_number(object, weir_names.variance_s, trips->variance_s);
}

/* The lanes of one home share what is known of its round trips: it is read once for all of them. */
static Trips *trips_of(Settling *settling, PyObject *lane) {
    PyObject *object = PyObject_GetAttr(lane, weir_names.trips);
    if (object == NULL) return NULL;
    for (int i = 0; i < settling->trips_count; i++)
        if (settling->trips[i].object == object) {
            Py_DECREF(object);
            return &settling->trips[i];
        }
    Trips *trips = &settling->trips[settling->trips_count];
    *trips = (Trips){.object = object};
    if (read_trips(trips, object)) {
        Py_DECREF(object);
        return NULL;
    }
    settling->trips_count++;
    return trips;
}

static int read_lane(Lane *lane, PyObject *pool) {
    PyObject *object = lane->object, *options = PyObject_GetAttr(object, weir_names.options);
    if (options == NULL) return -1;
    lane->max_timeout_s = get_number(options, weir_names.max_timeout_s);
    lane->merged_backlog_ms = get_number(options, weir_names.merged_backlog_ms);
    lane->target_backlog_ms = get_number(options, weir_names.target_backlog_ms);
    lane->max_window = get_number(options, weir_names.max_window);
    lane->min_window = get_number(options, weir_names.min_window);
    lane->opened_window = get_number(options, weir_names.opened_window);
    Py_DECREF(options);
    if (PyErr_Occurred()) return -1;
    lane->window = get_number(object, weir_names.window);
    lane->shared = (long long)get_number(object, weir_names.shared);
    lane->opening = get_truth(object, weir_names.opening);
    if (pool != NULL && !PyErr_Occurred()) {
        PyObject *home = PyObject_GetAttr(object, weir_names.home);
        lane->is_pool = home == NULL ? -1 : PyObject_RichCompareBool(home, pool, Py_EQ);
        Py_XDECREF(home);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int write_lane(const Lane *lane, PyObject *now) {
    PyObject *object = lane->object;
    if (lane->heard && (PyObject_SetAttr(object, weir_names.heard_s, now) ||
                        set_number(object, weir_names.backlog_s, lane->backlog_s)))
        return -1;
    return set_number(object, weir_names.window, lane->window) ||
           set_count(object, weir_names.shared, lane->shared) ||
           PyObject_SetAttr(object, weir_names.opening, lane->opening ? Py_True : Py_False);
}

int weir_end_settling(Settling *settling, int failed) {
    for (int i = 0; i < settling->lane_count; i++) {
        Lane *lane = &settling->lanes[i];
        failed = failed || write_lane(lane, settling->now);
        Py_DECREF(lane->object);
        Py_DECREF(lane->in_flight);
    }
    for (int i = 0; i < settling->trips_count; i++) {
        failed = failed || write_trips(&settling->trips[i], settling->now);
        Py_DECREF(settling->trips[i].object);
    }
    settling->lane_count = settling->trips_count = 0;
    return failed ? -1 : 0;
}

static Lane *lane_of(Settling *settling, PyObject *object) {
    for (int i = settling->lane_count - 1; i >= 0; i--)
        if (settling->lanes[i].object == object) return &settling->lanes[i];
    if (settling->lane_count == MOST_LANES && weir_end_settling(settling, 0)) return NULL;
    Lane *lane = &settling->lanes[settling->lane_count];
    *lane = (Lane){.object = object};
    if ((lane->trips = trips_of(settling, object)) == NULL || read_lane(lane, settling->pool)) return NULL;
    if ((lane->in_flight = get_dict(object, weir_names.in_flight)) == NULL) return NULL;
    Py_INCREF(object);
    settling->lane_count++;
    return lane;
}

static void measure(Trips *trips, double sent_s, double now_s) {
    double first_heard_s = trips->was_heard ? trips->first_heard_s : now_s;
    trips->measured = 1;
    trips->learned = trips->learned || sent_s >= first_heard_s;
    double sample_s = now_s - sent_s;
    if (trips->smoothed_s == 0) {
        trips->smoothed_s = sample_s;
        trips->variance_s = sample_s / 2;
        return;
    }
    trips->variance_s += (fabs(trips->smoothed_s - sample_s) - trips->variance_s) / 4;
    trips->smoothed_s += (sample_s - trips->smoothed_s) / 8;
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

/* 0, or -1 with an exception. */
static int settle(Lane *lane, PyObject *now, PyObject *request, double backlog_ms, int merged) {
    const Slots *slots = &weir_request_slots;
    set_slot(slots, request, REQUEST_DONE, Py_NewRef(Py_True));
    if (backlog_ms >= 0) {
        double backlog_s = backlog_ms / 1000;
        lane->heard = 1;
        lane->backlog_s = backlog_s < lane->max_timeout_s ? backlog_s : lane->max_timeout_s;
    }
    int is_in_flight = PyDict_Contains(lane->in_flight, request);
    if (is_in_flight <= 0) return is_in_flight;
    if (PyDict_DelItem(lane->in_flight, request)) return -1;
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
    long long tries = weir_number_in(slots, request, REQUEST_TRIES);
    PyObject *sent = slot_of(slots, request, REQUEST_SENT);
    double sent_s = sent == NULL ? -1 : PyFloat_AsDouble(sent);
    if (tries < 0 || PyErr_Occurred()) return -1;
    if (tries == 0 && sent != NULL) measure(lane->trips, sent_s, PyFloat_AS_DOUBLE(now));
    return 0;
}

int weir_settle_one(Settling *settling, PyObject *request, double backlog_ms, int merged) {
    PyObject *object = slot_of(&weir_request_slots, request, REQUEST_LANE);
    if (object == NULL || object == Py_None) return 0;
    Lane *lane = lane_of(settling, object);
    if (lane == NULL) return -1;
    if (lane->is_pool) backlog_ms = merged = 0; /* nobody reports how much waits there */
    return settle(lane, settling->now, request, backlog_ms, merged) ? -1 : 1;
}

/* settle(lane, requests, now_s, backlogs in ms or None, merged): as Lane.settle for each, in this order */
PyObject *weir_settle(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *requests, *backlogs;
    int merged;
    Settling settling = {0};
    if (!PyArg_ParseTuple(arguments, "OO!O!Op", &object, &PyList_Type, &requests, &PyFloat_Type, &settling.now,
                          &backlogs, &merged))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(requests);
    if (backlogs != Py_None && (!PyList_CheckExact(backlogs) || PyList_GET_SIZE(backlogs) != count))
        return PyErr_Format(PyExc_ValueError, "there is not one backlog for each request");
    Lane *lane = lane_of(&settling, object);
    int failed = lane == NULL;
    for (Py_ssize_t i = 0; !failed && i < count && i < PyList_GET_SIZE(requests); i++) {
        double backlog_ms = -1;
        if (backlogs != Py_None && i < PyList_GET_SIZE(backlogs)) {
            backlog_ms = PyFloat_AsDouble(PyList_GET_ITEM(backlogs, i));
            if (PyErr_Occurred()) failed = 1;
        }
        PyObject *request = Py_NewRef(PyList_GET_ITEM(requests, i));
        failed = failed || weir_fit(&weir_request_slots, request) ||
                 settle(lane, settling.now, request, backlog_ms, merged);
        Py_DECREF(request);
    }
    if (weir_end_settling(&settling, failed)) return NULL;
    Py_RETURN_NONE;
}
