/* Lane of hostlib/native/lane.py, with the rules of its methods in the same order and the same arithmetic. */
#include "lanes.h"

#include <structmember.h>

/* The ring of what waits. */

static int make_space(Lane *lane) {
    if (lane->count < lane->capacity) return 0;
    Py_ssize_t capacity = lane->capacity ? 2 * lane->capacity : 64;
    Request **waiting = PyMem_New(Request *, capacity);
    if (waiting == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < lane->count; i++) waiting[i] = lane->waiting[(lane->first + i) % lane->capacity];
    PyMem_Free(lane->waiting);
    lane->waiting = waiting;
    lane->first = 0;
    lane->capacity = capacity;
    return 0;
}

static int put_last(Lane *lane, Request *request) {
    if (make_space(lane)) return -1;
    lane->waiting[(lane->first + lane->count++) % lane->capacity] = (Request *)Py_NewRef(request);
    return 0;
}

static int put_first(Lane *lane, Request *request) {
    if (make_space(lane)) return -1;
    lane->first = (lane->first + lane->capacity - 1) % lane->capacity;
    lane->waiting[lane->first] = (Request *)Py_NewRef(request);
    lane->count++;
    return 0;
}

/* The first that waits, which is the caller's. */
static Request *take_first(Lane *lane) {
    Request *request = lane->waiting[lane->first];
    lane->first = (lane->first + 1) % lane->capacity;
    lane->count--;
    return request;
}

/* The list of what is in flight. */

static void fly(Lane *lane, Request *request) {
    if (request->flies_in != NULL) weir_land(request);
    request->flies_in = lane;
    request->before = lane->latest;
    request->behind = NULL;
    *(lane->latest == NULL ? &lane->oldest : &lane->latest->behind) = (Request *)Py_NewRef(request);
    lane->latest = request;
    lane->in_flight++;
}

void weir_land(Request *request) {
    Lane *lane = request->flies_in;
    if (lane == NULL) return;
    *(request->before == NULL ? &lane->oldest : &request->before->behind) = request->behind;
    *(request->behind == NULL ? &lane->latest : &request->behind->before) = request->before;
    request->flies_in = NULL;
    request->before = request->behind = NULL;
    lane->in_flight--;
    Py_DECREF(request);
}

static double timeout_of(const Lane *lane) {
    const RoundTrips *trips = lane->trips;
    double least_s = trips->learned ? lane->min_timeout_s : lane->initial_timeout_s;
    double known_s = trips->smoothed_s + 4 * trips->variance_s;
    return known_s > least_s ? known_s : least_s;
}

static void stamp(Lane *lane, Request *request, double now_s, double timeout_s) {
    if (request->tries > 0)
        timeout_s *= (double)(1 << (request->tries < 8 ? request->tries : 8));
    else
        request->first_sent_s = now_s;
    request->sent_s = now_s;
    request->timeout_s = timeout_s < lane->max_timeout_s ? timeout_s : lane->max_timeout_s;
    fly(lane, request);
}

static void enter(Lane *lane, Request *request) { Py_XSETREF(request->lane, Py_NewRef(lane)); }

static PyObject *add(PyObject *self, PyObject *requests) {
    PyObject *some = PySequence_Fast(requests, "requests are a sequence");
    if (some == NULL) return NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(some); i++) {
        Request *request = weir_as_request(PySequence_Fast_GET_ITEM(some, i));
        failed = request == NULL || put_last((Lane *)self, request);
        if (!failed) enter((Lane *)self, request);
    }
    Py_DECREF(some);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

static PyObject *launched(PyObject *self, PyObject *arguments) {
    Lane *lane = (Lane *)self;
    PyObject *requests;
    double now_s;
    if (!PyArg_ParseTuple(arguments, "O!d", &PyList_Type, &requests, &now_s)) return NULL;
    double timeout_s = timeout_of(lane);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(requests); i++) {
        Request *request = weir_as_request(PyList_GET_ITEM(requests, i));
        if (request == NULL) return NULL;
        if (request->done || request->lane != NULL) continue;
        enter(lane, request);
        stamp(lane, request, now_s, timeout_s);
    }
    Py_RETURN_NONE;
}

static int queue_again(Lane *lane, Request *request) {
    if (request->flies_in != lane) return 0;
    if (put_first(lane, request)) return -1;
    weir_land(request);
    return 0;
}

static PyObject *again(PyObject *self, PyObject *object) {
    Request *request = weir_as_request(object);
    if (request == NULL || queue_again((Lane *)self, request)) return NULL;
    Py_RETURN_NONE;
}

static void ask_anew(Lane *lane, double now_s) {
    if (!weir_restart(&lane->flow, now_s)) return;
    lane->backlog_s = 0;
    if (now_s - lane->trips->heard_s >= lane->min_timeout_s) weir_forget(lane->trips);
}

static PyObject *take(PyObject *self, PyObject *arguments, PyObject *named) {
    static char *names[] = {"now_s", "room", NULL};
    Lane *lane = (Lane *)self;
    double now_s;
    PyObject *most = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "d|O", names, &now_s, &most)) return NULL;
    long long limit = most == Py_None ? 0 : PyLong_AsLongLong(most);
    if (PyErr_Occurred()) return NULL;
    while (lane->count && lane->waiting[lane->first]->done) Py_DECREF(take_first(lane));
    if (!lane->in_flight && lane->count && !lane->waiting[lane->first]->tries) ask_anew(lane, now_s);
    long long room = weir_allowed(&lane->flow) - lane->in_flight;
    if (most != Py_None && limit < room) room = limit;
    double timeout_s = timeout_of(lane);
    PyObject *taken = PyList_New(0);
    while (taken != NULL && lane->count && PyList_GET_SIZE(taken) < room) {
        Request *request = take_first(lane);
        if (!request->done) {
            stamp(lane, request, now_s, timeout_s);
            if (PyList_Append(taken, (PyObject *)request)) Py_CLEAR(taken);
        }
        Py_DECREF(request);
    }
    return taken;
}

int weir_settle(Request *request, double now_s, double backlog_ms, int merged) {
    Lane *lane = (Lane *)request->lane;
    if (lane == NULL) return 0;
    request->done = 1;
    if (lane->is_pool) backlog_ms = merged = 0; /* nobody reports how much waits there */
    if (backlog_ms >= 0) {
        lane->flow.heard_s = now_s;
        lane->backlog_s = backlog_ms / 1000 < lane->max_timeout_s ? backlog_ms / 1000 : lane->max_timeout_s;
    }
    if (request->flies_in != lane) return 1;
    double sent_s = request->sent_s;
    unsigned tries = request->tries;
    weir_land(request);
    weir_answered(&lane->flow, now_s, backlog_ms, merged);
    if (backlog_ms >= 0 && tries == 0) weir_measure(lane->trips, sent_s, now_s);
    return 1;
}

static PyObject *settle(PyObject *self, PyObject *arguments, PyObject *named) {
    static char *names[] = {"request", "now_s", "backlog_ms", "merged", NULL};
    PyObject *object, *backlog;
    double now_s;
    int merged = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OdO|p", names, &object, &now_s, &backlog, &merged))
        return NULL;
    Request *request = weir_as_request(object);
    double backlog_ms = backlog == Py_None ? -1 : PyFloat_AsDouble(backlog);
    if (request == NULL || PyErr_Occurred()) return NULL;
    if (request->lane != self) return PyErr_Format(PyExc_ValueError, "the request is in another lane");
    weir_settle(request, now_s, backlog_ms, merged);
    Py_RETURN_NONE;
}

static PyObject *drop(PyObject *self, PyObject *object) {
    Request *request = weir_as_request(object);
    if (request == NULL) return NULL;
    request->done = 1;
    if (request->flies_in == (Lane *)self) weir_land(request);
    Py_RETURN_NONE;
}

static PyObject *feel(PyObject *self, PyObject *backlog) {
    double backlog_ms = PyFloat_AsDouble(backlog);
    if (PyErr_Occurred()) return NULL;
    weir_feel(&((Lane *)self)->flow, backlog_ms);
    Py_RETURN_NONE;
}

static double earliest_timeout_of(const Lane *lane) {
    if (lane->oldest == NULL) return Py_HUGE_VAL;
    double least_s = lane->min_timeout_s < lane->max_timeout_s ? lane->min_timeout_s : lane->max_timeout_s;
    return lane->oldest->sent_s + least_s;
}

static PyObject *earliest_timeout_s(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyFloat_FromDouble(earliest_timeout_of((Lane *)self));
}

/* Those in flight that timed out, the latest first; NULL with an exception. */
static PyObject *late_ones(const Lane *lane, double now_s) {
    double sent_before_s = now_s - lane->backlog_s, first_s = timeout_of(lane);
    PyObject *late = PyList_New(0);
    for (Request *one = lane->latest; late != NULL && one != NULL; one = one->before) {
        double timeout_s = one->tries == 0 && first_s < one->timeout_s ? first_s : one->timeout_s;
        if (sent_before_s - one->sent_s >= timeout_s && PyList_Append(late, (PyObject *)one)) Py_CLEAR(late);
    }
    return late;
}

static PyObject *expire(PyObject *self, PyObject *now) {
    Lane *lane = (Lane *)self;
    double now_s = PyFloat_AsDouble(now);
    if (PyErr_Occurred()) return NULL;
    PyObject *late = now_s < earliest_timeout_of(lane) ? PyList_New(0) : late_ones(lane, now_s);
    PyObject *retried = PyList_New(0), *dead = PyList_New(0), *result = NULL;
    int failed = late == NULL || retried == NULL || dead == NULL;
    if (!failed && PyList_GET_SIZE(late) > 0 && now_s - lane->halved_s > lane->trips->smoothed_s) {
        weir_halve(&lane->flow);
        lane->halved_s = now_s;
    }
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(late); i++) {
        Request *request = (Request *)PyList_GET_ITEM(late, i);
        if (now_s - request->first_sent_s >= lane->deadline_s) {
            request->done = 1;
            weir_land(request);
            failed = PyList_Append(dead, (PyObject *)request);
        } else {
            request->tries++;
            failed = queue_again(lane, request) || PyList_Append(retried, (PyObject *)request);
        }
    }
    if (!failed) result = PyTuple_Pack(2, retried, dead);
    Py_XDECREF(late);
    Py_XDECREF(retried);
    Py_XDECREF(dead);
    return result;
}

static PyObject *oldest_s(PyObject *self, PyObject *unused) {
    (void)unused;
    const Request *one = ((Lane *)self)->oldest;
    if (one == NULL) Py_RETURN_NONE;
    double first_s = one->first_sent_s;
    for (; one != NULL; one = one->behind)
        if (one->first_sent_s < first_s) first_s = one->first_sent_s;
    return PyFloat_FromDouble(first_s);
}

static PyObject *get_allowed(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(weir_allowed(&((Lane *)self)->flow));
}

static PyObject *get_waits(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(((Lane *)self)->count > 0);
}

static PyObject *get_busy(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(((Lane *)self)->count > 0 || ((Lane *)self)->in_flight > 0);
}

static PyObject *get_timeout_s(PyObject *self, void *unused) {
    (void)unused;
    return PyFloat_FromDouble(timeout_of((Lane *)self));
}

static PyObject *new_lane(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"home", "options", "trips", NULL};
    PyObject *home, *options, *trips = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "UO|O", names, &home, &options, &trips)) return NULL;
    if (trips != Py_None && !Py_IS_TYPE(trips, &weir_round_trips_type))
        return PyErr_Format(PyExc_TypeError, "trips are RoundTrips of this core");
    Lane *lane = (Lane *)type->tp_alloc(type, 0);
    if (lane == NULL) return NULL;
    lane->home = Py_NewRef(home);
    lane->is_pool = PyUnicode_CompareWithASCIIString(home, WEIR_POOL) == 0;
    lane->trips = (RoundTrips *)(trips == Py_None ? weir_round_trips_type.tp_alloc(&weir_round_trips_type, 0)
                                                  : Py_NewRef(trips));
    lane->initial_timeout_s = weir_get_number(options, "initial_timeout_s");
    lane->min_timeout_s = weir_get_number(options, "min_timeout_s");
    lane->max_timeout_s = weir_get_number(options, "max_timeout_s");
    lane->deadline_s = weir_get_number(options, "deadline_s");
    if (lane->trips == NULL || weir_begin_flow(&lane->flow, options)) Py_CLEAR(lane);
    return (PyObject *)lane;
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Lane *lane = (Lane *)self;
    Py_VISIT(lane->home);
    Py_VISIT(lane->trips);
    for (Py_ssize_t i = 0; i < lane->count; i++) Py_VISIT(lane->waiting[(lane->first + i) % lane->capacity]);
    for (Request *one = lane->oldest; one != NULL; one = one->behind) Py_VISIT(one);
    return 0;
}

static int clear(PyObject *self) {
    Lane *lane = (Lane *)self;
    while (lane->count) Py_DECREF(take_first(lane));
    while (lane->oldest != NULL) weir_land(lane->oldest);
    return 0;
}

static void dealloc(PyObject *self) {
    Lane *lane = (Lane *)self;
    PyObject_GC_UnTrack(self);
    clear(self);
    PyMem_Free(lane->waiting);
    Py_XDECREF(lane->home);
    Py_XDECREF(lane->trips);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef methods[] = {
    {"add", add, METH_O, NULL},
    {"launched", launched, METH_VARARGS, NULL},
    {"again", again, METH_O, NULL},
    {"take", (PyCFunction)(void (*)(void))take, METH_VARARGS | METH_KEYWORDS, NULL},
    {"settle", (PyCFunction)(void (*)(void))settle, METH_VARARGS | METH_KEYWORDS, NULL},
    {"drop", drop, METH_O, NULL},
    {"feel", feel, METH_O, NULL},
    {"earliest_timeout_s", earliest_timeout_s, METH_NOARGS, NULL},
    {"expire", expire, METH_O, NULL},
    {"oldest_s", oldest_s, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"home", T_OBJECT, offsetof(Lane, home), READONLY, NULL},
    {"window", T_DOUBLE, offsetof(Lane, flow.window), READONLY, NULL},
    {"in_flight", T_PYSSIZET, offsetof(Lane, in_flight), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"allowed", get_allowed, NULL, NULL, NULL}, {"waits", get_waits, NULL, NULL, NULL},
    {"busy", get_busy, NULL, NULL, NULL},       {"timeout_s", get_timeout_s, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject weir_lane_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "weir_native.Lane", .tp_basicsize = sizeof(Lane),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .tp_methods = methods, .tp_members = members,
    .tp_getset = properties, .tp_new = new_lane, .tp_traverse = traverse, .tp_clear = clear, .tp_dealloc = dealloc,
};
