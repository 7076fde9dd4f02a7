/* What hostlib/lane.py does for each request that is sent or answered, for many at once. The rules are those of
   Lane.add, Lane.take, Lane.settle and RoundTrips.measure, in the same order and the same arithmetic. */
#include "layout.h"

#include <math.h>

enum { UNSHARED = 2 };
static const double SHRINK = 0.2;

static struct {
    PyObject *popleft, *extend, *home, *window, *shared, *in_flight, *waiting, *heard_s, *backlog_s,
    *options, *trips, *max_timeout_s, *merged_backlog_ms, *target_backlog_ms, *max_window, *min_window,
    *opened_window, *opening, *trips_heard_s, *first_heard_s, *learned, *smoothed_s, *variance_s;
} names;

int weir_prepare_lanes(PyObject *module) {
    struct {
        PyObject **name;
        const char *text;
    } all[] = {
        {&names.popleft, "popleft"}, {&names.extend, "extend"}, {&names.home, "home"},
        {&names.window, "window"}, {&names.shared, "_shared"}, {&names.in_flight, "_in_flight"},
        {&names.waiting, "_waiting"}, {&names.heard_s, "_heard_s"}, {&names.backlog_s, "_backlog_s"},
        {&names.options, "_options"}, {&names.trips, "_trips"}, {&names.max_timeout_s, "max_timeout_s"},
        {&names.merged_backlog_ms, "merged_backlog_ms"}, {&names.target_backlog_ms, "target_backlog_ms"},
        {&names.max_window, "max_window"}, {&names.min_window, "min_window"},
        {&names.opened_window, "opened_window"}, {&names.opening, "_opening"},
        {&names.trips_heard_s, "heard_s"}, {&names.first_heard_s, "_first_heard_s"},
        {&names.learned, "learned"}, {&names.smoothed_s, "smoothed_s"}, {&names.variance_s, "variance_s"},
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

/* An attribute that is True; -1 with an exception. */
static int get_truth(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    int truth = value == Py_True;
    Py_DECREF(value);
    return truth;
}

static PyObject *get_dict(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value != NULL && !PyDict_CheckExact(value)) {
        PyErr_Format(PyExc_TypeError, "%U is no dictionary", name);
        Py_CLEAR(value);
    }
    return value;
}

int weir_append_requests(PyObject *requests, PyTypeObject *type, PyObject *owner, Py_ssize_t first, Py_ssize_t end) {
    PyObject *zero = PyLong_FromLong(0), *never = PyFloat_FromDouble(0);
    int failed = zero == NULL || never == NULL;
    for (Py_ssize_t fragment = first; !failed && fragment < end; fragment++) {
        PyObject *one = type->tp_alloc(type, 0), *number = PyLong_FromSsize_t(fragment);
        failed = one == NULL || number == NULL || weir_fit(&weir_request_slots, one);
        if (!failed) {
            PyObject *values[] = {
                Py_NewRef(owner), Py_NewRef(number), Py_NewRef(zero), Py_NewRef(zero), Py_NewRef(never),
                Py_NewRef(never), Py_NewRef(never), Py_NewRef(Py_False), Py_NewRef(Py_None),
            };
            for (int i = 0; i < (int)(sizeof values / sizeof *values); i++)
                set_slot(&weir_request_slots, one, i, values[i]);
            failed = PyList_Append(requests, one);
        }
        Py_XDECREF(one);
        Py_XDECREF(number);
    }
    Py_XDECREF(zero);
    Py_XDECREF(never);
    return failed ? -1 : 0;
}

/* new_requests(class, owner, first, end) -> one for each fragment from `first` on and before `end` */
PyObject *weir_new_requests(PyObject *module, PyObject *arguments) {
    (void)module;
    PyTypeObject *type;
    PyObject *owner;
    Py_ssize_t first, end;
    if (!PyArg_ParseTuple(arguments, "O!Onn", &PyType_Type, &type, &owner, &first, &end)) return NULL;
    if (first < 0 || end < first || end > MOST_FRAGMENTS)
        return PyErr_Format(PyExc_ValueError, "there are no fragments %zd to %zd", first, end);
    PyObject *requests = PyList_New(0);
    if (requests != NULL && weir_append_requests(requests, type, owner, first, end)) Py_CLEAR(requests);
    return requests;
}

/* add(lane, requests): they wait in this lane */
PyObject *weir_add(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *lane, *requests;
    if (!PyArg_ParseTuple(arguments, "OO!", &lane, &PyList_Type, &requests)) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(requests); i++) {
        PyObject *request = PyList_GET_ITEM(requests, i);
        if (weir_fit(&weir_request_slots, request)) return NULL;
        set_slot(&weir_request_slots, request, REQUEST_LANE, Py_NewRef(lane));
    }
    PyObject *waiting = PyObject_GetAttr(lane, names.waiting);
    PyObject *done = waiting == NULL ? NULL : PyObject_CallMethodOneArg(waiting, names.extend, requests);
    Py_XDECREF(waiting);
    return done;
}

typedef struct {
    PyObject *in_flight, *now, *first_timeout; /* of what is sent for the first time */
    double timeout_s, most_s;
} Sending;

static void end_sending(Sending *sending) {
    Py_CLEAR(sending->in_flight);
    Py_CLEAR(sending->first_timeout);
}

static int begin_sending(Sending *sending, PyObject *lane) {
    PyObject *options = PyObject_GetAttr(lane, names.options);
    sending->most_s = options == NULL ? -1 : get_number(options, names.max_timeout_s);
    Py_XDECREF(options);
    if (PyErr_Occurred()) return -1;
    double first_s = sending->timeout_s < sending->most_s ? sending->timeout_s : sending->most_s;
    sending->in_flight = get_dict(lane, names.in_flight);
    sending->first_timeout = PyFloat_FromDouble(first_s);
    if (sending->in_flight != NULL && sending->first_timeout != NULL) return 0;
    end_sending(sending);
    return -1;
}

static int stamp(const Sending *sending, PyObject *request) {
    long long tries = weir_number_in(&weir_request_slots, request, REQUEST_TRIES);
    if (tries < 0) return -1;
    PyObject *timeout = NULL;
    if (tries > 0) {
        double timeout_s = sending->timeout_s * (double)(1 << (tries < 8 ? tries : 8));
        timeout = PyFloat_FromDouble(timeout_s < sending->most_s ? timeout_s : sending->most_s);
    } else {
        set_slot(&weir_request_slots, request, REQUEST_FIRST_SENT, Py_NewRef(sending->now));
        timeout = Py_NewRef(sending->first_timeout);
    }
    if (set_slot(&weir_request_slots, request, REQUEST_TIMEOUT, timeout)) return -1;
    set_slot(&weir_request_slots, request, REQUEST_SENT, Py_NewRef(sending->now));
    return PyDict_SetItem(sending->in_flight, request, Py_None);
}

/* take(lane, now_s, room, timeout_s) -> requests that wait, at most `room`, as sent now */
PyObject *weir_take(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *lane;
    Py_ssize_t room;
    Sending sending = {0};
    if (!PyArg_ParseTuple(arguments, "OO!nd", &lane, &PyFloat_Type, &sending.now, &room, &sending.timeout_s))
        return NULL;
    if (begin_sending(&sending, lane)) return NULL;
    PyObject *waiting = PyObject_GetAttr(lane, names.waiting);
    PyObject *taken = waiting == NULL ? NULL : PyList_New(0);
    while (taken != NULL && PyList_GET_SIZE(taken) < room) {
        Py_ssize_t left = PyObject_Size(waiting);
        if (left == 0) break;
        PyObject *request = left < 0 ? NULL : PyObject_CallMethodNoArgs(waiting, names.popleft);
        int failed = request == NULL || weir_fit(&weir_request_slots, request);
        if (!failed && slot_of(&weir_request_slots, request, REQUEST_DONE) == Py_False)
            failed = stamp(&sending, request) || PyList_Append(taken, request);
        Py_XDECREF(request);
        if (failed) Py_CLEAR(taken);
    }
    Py_XDECREF(waiting);
    end_sending(&sending);
    return taken;
}

static int read_trips(Trips *trips, PyObject *object) {
    trips->smoothed_s = get_number(object, names.smoothed_s);
    trips->variance_s = get_number(object, names.variance_s);
    trips->learned = get_truth(object, names.learned);
    PyObject *first = PyObject_GetAttr(object, names.first_heard_s);
    trips->was_heard = first != NULL && first != Py_None;
    if (trips->was_heard) trips->first_heard_s = PyFloat_AsDouble(first);
    Py_XDECREF(first);
    return PyErr_Occurred() ? -1 : 0;
}

static int write_trips(const Trips *trips, PyObject *now) {
    if (!trips->measured) return 0;
    PyObject *object = trips->object;
    return PyObject_SetAttr(object, names.trips_heard_s, now) ||
           (!trips->was_heard && PyObject_SetAttr(object, names.first_heard_s, now)) ||
           PyObject_SetAttr(object, names.learned, trips->learned ? Py_True : Py_False) ||
           set_number(object, names.smoothed_s, trips->smoothed_s) ||
           set_number(object, names.variance_s, trips->variance_s);
}

/* The lanes of one home share what is known of its round trips: it is read once for all of them. */
static Trips *trips_of(Settling *settling, PyObject *lane) {
    PyObject *object = PyObject_GetAttr(lane, names.trips);
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
    PyObject *object = lane->object, *options = PyObject_GetAttr(object, names.options);
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
    lane->opening = get_truth(object, names.opening);
    if (pool != NULL && !PyErr_Occurred()) {
        PyObject *home = PyObject_GetAttr(object, names.home);
        lane->is_pool = home == NULL ? -1 : PyObject_RichCompareBool(home, pool, Py_EQ);
        Py_XDECREF(home);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int write_lane(const Lane *lane, PyObject *now) {
    PyObject *object = lane->object;
    if (lane->heard && (PyObject_SetAttr(object, names.heard_s, now) ||
                        set_number(object, names.backlog_s, lane->backlog_s)))
        return -1;
    return set_number(object, names.window, lane->window) || set_count(object, names.shared, lane->shared) ||
           PyObject_SetAttr(object, names.opening, lane->opening ? Py_True : Py_False);
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
    if ((lane->in_flight = get_dict(object, names.in_flight)) == NULL) return NULL;
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

/* Nobody wants the request, which is fit, any more: as Lane.drop. 0, or -1 with an exception. */
static int drop_one(PyObject *request) {
    PyObject *lane = slot_of(&weir_request_slots, request, REQUEST_LANE);
    set_slot(&weir_request_slots, request, REQUEST_DONE, Py_NewRef(Py_True));
    if (lane == NULL || lane == Py_None) return 0;
    PyObject *in_flight = get_dict(lane, names.in_flight);
    int has = in_flight == NULL ? -1 : PyDict_Contains(in_flight, request);
    if (has == 1 && PyDict_DelItem(in_flight, request)) has = -1;
    Py_XDECREF(in_flight);
    return has < 0 ? -1 : 0;
}

/* drop(requests): nobody wants them any more */
PyObject *weir_drop(PyObject *module, PyObject *requests) {
    (void)module;
    if (!PyList_CheckExact(requests)) return PyErr_Format(PyExc_TypeError, "requests are a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(requests); i++) {
        PyObject *request = Py_NewRef(PyList_GET_ITEM(requests, i));
        int failed = weir_fit(&weir_request_slots, request) || drop_one(request);
        Py_DECREF(request);
        if (failed) return NULL;
    }
    Py_RETURN_NONE;
}

/* launched(lane, requests, now_s, timeout_s): as Lane.launched for each that is not done and in no lane */
PyObject *weir_launched(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *lane, *requests;
    Sending sending = {0};
    if (!PyArg_ParseTuple(arguments, "OO!O!d", &lane, &PyList_Type, &requests, &PyFloat_Type, &sending.now,
                          &sending.timeout_s))
        return NULL;
    if (begin_sending(&sending, lane)) return NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(requests); i++) {
        PyObject *request = PyList_GET_ITEM(requests, i);
        failed = weir_fit(&weir_request_slots, request);
        if (failed || slot_of(&weir_request_slots, request, REQUEST_DONE) != Py_False ||
            slot_of(&weir_request_slots, request, REQUEST_LANE) != Py_None)
            continue;
        set_slot(&weir_request_slots, request, REQUEST_LANE, Py_NewRef(lane));
        failed = stamp(&sending, request);
    }
    end_sending(&sending);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
