/* Requests that wait, are sent or are not wanted any more: what hostlib/client/lane.py does for one of them, for many at
   once. The rules are those of Lane.add, Lane.take, Lane.launched and Lane.drop. */
#include "lanes.h"

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
    PyObject *waiting = PyObject_GetAttr(lane, weir_names.waiting);
    PyObject *done = waiting == NULL ? NULL : PyObject_CallMethodOneArg(waiting, weir_names.extend, requests);
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
    PyObject *options = PyObject_GetAttr(lane, weir_names.options);
    sending->most_s = options == NULL ? -1 : get_number(options, weir_names.max_timeout_s);
    Py_XDECREF(options);
    if (PyErr_Occurred()) return -1;
    double first_s = sending->timeout_s < sending->most_s ? sending->timeout_s : sending->most_s;
    sending->in_flight = get_dict(lane, weir_names.in_flight);
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
    PyObject *waiting = PyObject_GetAttr(lane, weir_names.waiting);
    PyObject *taken = waiting == NULL ? NULL : PyList_New(0);
    while (taken != NULL && PyList_GET_SIZE(taken) < room) {
        Py_ssize_t left = PyObject_Size(waiting);
        if (left == 0) break;
        PyObject *request = left < 0 ? NULL : PyObject_CallMethodNoArgs(waiting, weir_names.popleft);
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

/* Nobody wants the request, which is fit, any more: as Lane.drop. 0, or -1 with an exception. */
static int drop_one(PyObject *request) {
    PyObject *lane = slot_of(&weir_request_slots, request, REQUEST_LANE);
    set_slot(&weir_request_slots, request, REQUEST_DONE, Py_NewRef(Py_True));
    if (lane == NULL || lane == Py_None) return 0;
    PyObject *in_flight = get_dict(lane, weir_names.in_flight);
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
