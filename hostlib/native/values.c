/* VALUEs in bursts at a client: what hostlib/client/fetches.py does for one fragment, for as many as come one behind the
   other and are what was asked for, of whatever blocks. Whatever is out of the ordinary ends a run and is left to
   Python. */
#include "lanes.h"

enum {
    FETCH_ASKED_EPOCH, FETCH_BUFFER, FETCH_CONTENT, FETCH_FIRST, FETCH_FLAGS, FETCH_FRAGMENTS, FETCH_LENGTH, FETCH_MERGED,
    FETCH_MISSING, FETCH_POOL, FETCH_PROBED, FETCH_PROBE_FROM_POOL, FETCH_REQUESTS, FETCH_TARGET,
    AHEAD = 16, /* tags are made for so many messages at a time */
};
static const char *const fetch_names[] = {
    "asked_epoch", "buffer", "content", "first_sequence", "flags", "fragments", "length", "merged_fragments", "missing",
    "pool_fragments", "probed_s", "probe_from_pool", "requests", "target",
};
static Attributes fetch_attributes = {.names = fetch_names};

typedef struct {
    PyObject *datagrams, *active, *events;
    const uint8_t *tag_state;
    unsigned tenant, members_epoch;
    unsigned first_epoch; /* of the first message: Python has judged whether a home with it may miss deletions */
    PyObject *now;
    /* The fetch whose values come now; NULL before the first. What is counted is written when it ends. */
    PyObject *fetch, *requests;
    long long missing;
    int placed, pooled, shared;
    Py_buffer buffer;
    int has_buffer;
    uint64_t content; /* 0: its write is not known */
    unsigned flags, fragments;
    uint32_t first; /* the number of its first question */
    uint8_t key[KEY_BYTES];
    /* Tags of the messages from `tagged_from` on and before `tagged_end`, where they have a value of the tenant's. */
    Py_ssize_t tagged_from, tagged_end;
    uint8_t tags[AHEAD][TAG_BYTES];
    /* What the run comes to. */
    Py_ssize_t from_home, merged;
    int epoch, backlog_ms; /* of the homes that answered; -1: none did */
} Run;

/* Whether the bytes of a message are a VALUE by the rules of wire.decode, whole, of this tenant. */
static int is_value(const uint8_t *message, unsigned tenant) {
    unsigned fragment = load16(message + AT_FRAGMENT), fragments = load16(message + AT_FRAGMENTS);
    unsigned value_bytes = load16(message + AT_VALUE_BYTES);
    return message[AT_VERSION] == VERSION && message[AT_OP] == OP_VALUE && fragment < fragments &&
           (value_bytes == VALUE_BYTES || (value_bytes < VALUE_BYTES && fragment + 1 == fragments)) &&
           load16(message + AT_TENANT) == tenant;
}

static const uint8_t *value_at(const Run *run, Py_ssize_t at) {
    const uint8_t *message = message_at(run->datagrams, at, MESSAGE_BYTES);
    return message != NULL && is_value(message, run->tenant) ? message : NULL;
}

/* The tags that values should have, from a place on. */
static void make_tags(Run *run, Py_ssize_t from) {
    static uint8_t padded[AHEAD][MESSAGE_BYTES]; /* the interpreter's lock is held */
    const uint8_t *messages[AHEAD];
    uint8_t tags[AHEAD][TAG_BYTES];
    Py_ssize_t places[AHEAD];
    size_t count = 0;
    Py_ssize_t end = PyList_GET_SIZE(run->datagrams) - from < AHEAD ? PyList_GET_SIZE(run->datagrams) : from + AHEAD;
    for (Py_ssize_t at = from; at < end; at++) {
        const uint8_t *message = value_at(run, at);
        if (message == NULL) continue;
        size_t whole = HEADER_BYTES + (size_t)load16(message + AT_VALUE_BYTES);
        if (whole < MESSAGE_BYTES) { /* what is said of the padding is that it is zeros */
            memcpy(padded[count], message, whole);
            memset(padded[count] + whole, 0, MESSAGE_BYTES - whole);
            message = padded[count];
        }
        messages[count] = message;
        places[count++] = at - from;
    }
    weir_tags(run->tag_state, messages, count, tags);
    for (size_t i = 0; i < count; i++) memcpy(run->tags[places[i]], tags[i], TAG_BYTES);
    run->tagged_from = from;
    run->tagged_end = end;
}

/* Whether the value, which is one of the tenant's, was written under the secret. */
static int is_genuine(Run *run, Py_ssize_t at, const uint8_t *message) {
    if (at < run->tagged_from || at >= run->tagged_end) make_tags(run, at);
    const uint8_t *right = run->tags[at - run->tagged_from];
    int differs = 0;
    for (int i = 0; i < TAG_BYTES; i++) differs |= right[i] ^ message[AT_TAG + i];
    return !differs;
}

static int count_up(PyObject *fetch, int which, int by) {
    if (by == 0) return 0;
    long long before = weir_number(&fetch_attributes, fetch, which);
    return before < 0 ? -1 : weir_set_number(&fetch_attributes, fetch, which, before + by);
}

/* 0, or -1 with an exception; `failed`: there is one already. */
static int end_fetch(Run *run, int failed) {
    if (run->has_buffer) PyBuffer_Release(&run->buffer);
    if (run->fetch != NULL && !failed)
        failed = count_up(run->fetch, FETCH_POOL, run->pooled) || count_up(run->fetch, FETCH_MERGED, run->shared) ||
                 (run->placed && weir_set_number(&fetch_attributes, run->fetch, FETCH_MISSING, run->missing));
    run->has_buffer = run->placed = run->pooled = run->shared = 0;
    Py_CLEAR(run->fetch);
    Py_CLEAR(run->requests);
    return failed ? -1 : 0;
}

/* Find out whose the message is: 1; 0: of no fetch; -1: exception. */
static int find_fetch(Run *run, const uint8_t *message) {
    if (run->fetch != NULL && memcmp(message + AT_KEY, run->key, KEY_BYTES) == 0) return 1;
    if (end_fetch(run, 0)) return -1;
    memcpy(run->key, message + AT_KEY, KEY_BYTES);
    PyObject *key = PyBytes_FromStringAndSize((const char *)run->key, KEY_BYTES);
    if (key == NULL) return -1;
    PyObject *fetch = PyDict_GetItemWithError(run->active, key);
    Py_DECREF(key);
    if (fetch == NULL) return PyErr_Occurred() ? -1 : 0;
    PyObject *content = weir_attribute(&fetch_attributes, fetch, FETCH_CONTENT);
    PyObject *requests = content == NULL ? NULL : weir_attribute(&fetch_attributes, fetch, FETCH_REQUESTS);
    if (requests == NULL) return -1;
    if (!PyList_CheckExact(requests)) return 0;
    run->content = PyLong_AsUnsignedLongLong(content);
    if (run->content == UINT64_MAX && PyErr_Occurred()) return -1;
    long long fragments = weir_number(&fetch_attributes, fetch, FETCH_FRAGMENTS);
    long long flags = fragments < 0 ? -1 : weir_number(&fetch_attributes, fetch, FETCH_FLAGS);
    long long first = flags < 0 ? -1 : weir_number(&fetch_attributes, fetch, FETCH_FIRST);
    run->missing = first < 0 ? -1 : weir_number(&fetch_attributes, fetch, FETCH_MISSING);
    if (run->missing < 0) return -1;
    run->first = (uint32_t)first;
    run->fragments = (unsigned)fragments;
    run->flags = (unsigned)flags;
    if (run->content != 0) {
        PyObject *buffer = weir_attribute(&fetch_attributes, fetch, FETCH_BUFFER);
        if (buffer == NULL || PyObject_GetBuffer(buffer, &run->buffer, PyBUF_WRITABLE)) return -1;
        run->has_buffer = 1;
    }
    run->fetch = Py_NewRef(fetch);
    run->requests = Py_NewRef(requests);
    return 1;
}

/* For Python: the fetch whose probe this datagram is, or which is COMPLETE or has LEARNED. */
static int tell(Run *run, Py_ssize_t what) {
    PyObject *event = Py_BuildValue("(On)", run->fetch, what);
    int failed = event == NULL || PyList_Append(run->events, event);
    Py_XDECREF(event);
    return failed ? -1 : 0;
}

/* A place for so many bytes: the caller's if it is large enough, which is said, else a new one. */
static PyObject *make_buffer(PyObject *target, Py_ssize_t bytes, int *fits) {
    *fits = 1;
    if (target == Py_None) {
        PyObject *room = PyByteArray_FromStringAndSize(NULL, bytes);
        if (room == NULL) return NULL;
        memset(PyByteArray_AS_STRING(room), 0, (size_t)bytes);
        PyObject *view = PyMemoryView_FromObject(room);
        Py_DECREF(room);
        return view;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(target, &view, PyBUF_WRITABLE)) return NULL;
    *fits = view.len >= bytes;
    PyBuffer_Release(&view);
    return Py_NewRef(target);
}

/* Fetch.learn, and the probe's own value; Python is left what may not fit. 0, or -1 with an exception. */
static int learn(Run *run, Py_ssize_t at, const uint8_t *message) {
    PyObject *fetch = run->fetch;
    Py_ssize_t fragments = load16(message + AT_FRAGMENTS), value_bytes = load16(message + AT_VALUE_BYTES);
    PyObject *target = weir_attribute(&fetch_attributes, fetch, FETCH_TARGET);
    PyObject *asked = target == NULL ? NULL : weir_attribute(&fetch_attributes, fetch, FETCH_ASKED_EPOCH);
    int fits = 0;
    long epoch = asked == NULL ? -1 : PyLong_AsLong(asked);
    if (PyErr_Occurred()) return -1;
    if (PyList_GET_SIZE(run->requests) != 1) return tell(run, at);
    PyObject *buffer = make_buffer(target, fragments * VALUE_BYTES, &fits);
    if (buffer == NULL) return -1;
    Py_buffer view;
    if (!fits || PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)) {
        Py_DECREF(buffer);
        return fits ? -1 : tell(run, at);
    }
    memcpy(view.buf, message + HEADER_BYTES, (size_t)value_bytes);
    PyBuffer_Release(&view);
    int from_pool = (load16(message + AT_FLAGS) & FLAG_FROM_POOL) != 0;
    if (weir_set_attribute(&fetch_attributes, fetch, FETCH_BUFFER, buffer) ||
        (epoch >= 0 && weir_set_number(&fetch_attributes, fetch, FETCH_ASKED_EPOCH, run->members_epoch)) ||
        weir_set_attribute(&fetch_attributes, fetch, FETCH_CONTENT, PyLong_FromUnsignedLongLong(load64(message + AT_CONTENT))) ||
        weir_set_attribute(&fetch_attributes, fetch, FETCH_PROBED, Py_NewRef(run->now)) ||
        weir_set_attribute(&fetch_attributes, fetch, FETCH_PROBE_FROM_POOL, Py_NewRef(from_pool ? Py_True : Py_False)) ||
        weir_set_number(&fetch_attributes, fetch, FETCH_FRAGMENTS, fragments) ||
        weir_set_number(&fetch_attributes, fetch, FETCH_MISSING, fragments - 1) ||
        (fragments == 1 && weir_set_number(&fetch_attributes, fetch, FETCH_LENGTH, value_bytes)) ||
        weir_append_requests(run->requests, fetch, 1, fragments))
        return -1;
    if (tell(run, fragments == 1 ? COMPLETE : LEARNED)) return -1;
    return end_fetch(run, 0); /* what comes next is of a fetch that knows its write */
}

/* The value is the request's: 0, or -1 with an exception. */
static int place(Run *run, Py_ssize_t at, const uint8_t *message) {
    unsigned flags = load16(message + AT_FLAGS);
    if (flags & FLAG_FROM_POOL) {
        run->pooled++;
    } else {
        run->from_home++;
        run->epoch = message[AT_EPOCH];
        run->backlog_ms = load16(message + AT_BACKLOG_MS);
    }
    if (flags & FLAG_MERGED) {
        run->merged++;
        run->shared++;
    }
    if (run->content == 0) return learn(run, at, message);
    Py_ssize_t fragment = load16(message + AT_FRAGMENT), from = fragment * VALUE_BYTES;
    Py_ssize_t value_bytes = load16(message + AT_VALUE_BYTES);
    memcpy((uint8_t *)run->buffer.buf + from, message + HEADER_BYTES, (size_t)value_bytes);
    if (fragment + 1 == (Py_ssize_t)run->fragments &&
        weir_set_number(&fetch_attributes, run->fetch, FETCH_LENGTH, from + value_bytes))
        return -1;
    run->missing--;
    run->placed = 1;
    return run->missing == 0 ? tell(run, COMPLETE) : 0;
}

/* wire.is_of_before */
static int is_of_before(const Run *run, const uint8_t *message) {
    if (load16(message + AT_FLAGS) & (FLAG_MERGED | FLAG_PUSHED)) return 0;
    return load32(message + AT_SEQUENCE) - run->first >= UINT32_C(1) << 31;
}

/* Take one message: 1, or 0 if it is not an ordinary answer to what was asked, or -1 with an exception. */
static int take_one(Run *run, Py_ssize_t at) {
    const uint8_t *message = value_at(run, at);
    if (message == NULL) return 0;
    unsigned message_flags = load16(message + AT_FLAGS);
    int is_home = !(message_flags & FLAG_FROM_POOL);
    if (is_home && run->first_epoch != message[AT_EPOCH]) return 0;
    int found = find_fetch(run, message);
    if (found <= 0) return found;
    Py_ssize_t fragment = load16(message + AT_FRAGMENT), value_bytes = load16(message + AT_VALUE_BYTES);
    if (run->content == 0 ? fragment != 0 || load64(message + AT_CONTENT) == 0 || is_of_before(run, message)
                          : load64(message + AT_CONTENT) != run->content ||
                                load16(message + AT_FRAGMENTS) != run->fragments ||
                                fragment * VALUE_BYTES + value_bytes > run->buffer.len)
        return 0;
    if (fragment >= PyList_GET_SIZE(run->requests)) return 0;
    Request *request = weir_as_request(PyList_GET_ITEM(run->requests, fragment));
    if (request == NULL) return -1;
    if (request->done) return 0;
    if ((run->flags | request->flags) & FLAG_BYPASS & ~message_flags) return 0;
    if (!is_genuine(run, at, message)) return 0;
    Py_INCREF(request);
    double backlog_ms = is_home ? load16(message + AT_BACKLOG_MS) : -1;
    int taken = weir_settle(request, PyFloat_AS_DOUBLE(run->now), backlog_ms, (message_flags & FLAG_MERGED) != 0);
    Py_DECREF(request);
    return taken > 0 && place(run, at, message) ? -1 : taken;
}

/* take_values(datagrams, at, active, tenant, tag_state, now_s, members' epoch) -> None, or (count, from_home,
   merged, epoch, backlog_ms, events) of as many datagrams from there on as answer requests of active fetches: values
   are in their buffers, requests are settled in their lanes and counted in their fetches. Those that no pool answered
   came from home and have that epoch; the backlog is the last one's; -1 where none did. Events are (fetch, place of
   its probe), which is for Python to learn from, (fetch, LEARNED) of one whose probe was that, and (fetch,
   COMPLETE). */
PyObject *weir_take_values(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_ssize_t at;
    PyObject *tag_state;
    Run run = {.epoch = -1, .backlog_ms = -1};
    if (!PyArg_ParseTuple(arguments, "OnO!ISO!I", &run.datagrams, &at, &PyDict_Type, &run.active, &run.tenant,
                          &tag_state, &PyFloat_Type, &run.now, &run.members_epoch))
        return NULL;
    if (!PyList_CheckExact(run.datagrams)) Py_RETURN_NONE;
    Py_ssize_t first = at, total = PyList_GET_SIZE(run.datagrams);
    if (at < 0 || at >= total) return PyErr_Format(PyExc_IndexError, "there is no datagram %zd", at);
    if (PyBytes_GET_SIZE(tag_state) != TAG_STATE_BYTES)
        return PyErr_Format(PyExc_ValueError, "this is no tag_state");
    run.tag_state = (const uint8_t *)PyBytes_AS_STRING(tag_state);
    const uint8_t *message = value_at(&run, at);
    if (message == NULL) Py_RETURN_NONE;
    run.first_epoch = message[AT_EPOCH];
    run.events = PyList_New(0);
    int state = run.events == NULL ? -1 : 1;
    while (state == 1 && at < total) {
        state = take_one(&run, at);
        at += state == 1;
    }
    if (end_fetch(&run, state < 0)) state = -1;
    PyObject *result = NULL;
    if (state >= 0 && at == first)
        result = Py_NewRef(Py_None);
    else if (state >= 0)
        result = Py_BuildValue("(nnniiO)", at - first, run.from_home, run.merged, run.epoch, run.backlog_ms,
                               run.events);
    Py_XDECREF(run.events);
    return result;
}
