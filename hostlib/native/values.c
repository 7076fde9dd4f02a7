/* VALUEs in bursts at a client: what hostlib/fetches.py does for one fragment of a block whose write is known, for
   as many as come one behind the other; and a probe's, which says what write that is, by itself. Whatever is out of
   the ordinary ends a run and is left to Python. */
#include "layout.h"

static PyObject *name_content, *name_copy, *name_digest, *name_done, *name_flags, *name_fragment, *name_fragments,
    *name_buffer, *name_lane, *name_requests, *name_tries, *name_update;

int weir_prepare_names(void) {
    struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&name_content, "content"}, {&name_copy, "copy"}, {&name_digest, "digest"}, {&name_done, "done"},
        {&name_flags, "flags"}, {&name_fragment, "fragment"}, {&name_fragments, "fragments"},
        {&name_buffer, "buffer"}, {&name_lane, "lane"}, {&name_requests, "requests"}, {&name_tries, "tries"}, {&name_update, "update"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL) return -1;
    return 0;
}

/* An attribute that is an int from 0 on; -1 with an exception. */
static long long number_of(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    long long number = PyLong_AsLongLong(value);
    Py_DECREF(value);
    if (number < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%U is negative", name);
    return number;
}

static int truth_of(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    int truth = PyObject_IsTrue(value);
    Py_DECREF(value);
    return truth;
}

typedef struct {
    PyObject *fetch, *requests, *sealed; /* `sealed`: a bytearray, what a tag covers */
    PyObject *tags;                      /* hashlib's, keyed */
    PyObject *lane;                      /* of the requests; NULL before the first */
    Py_buffer buffer;
    int has_buffer, is_probe;
    uint64_t content;
    unsigned fetch_flags, flags, fragments, tenant;
    uint8_t epoch;
    Py_ssize_t end; /* of the block, once its last fragment is there */
    uint8_t key[KEY_BYTES];
} Run;

static void end_run(Run *run) {
    if (run->has_buffer) PyBuffer_Release(&run->buffer);
    Py_XDECREF(run->fetch);
    Py_XDECREF(run->requests);
    Py_XDECREF(run->sealed);
    Py_XDECREF(run->lane);
}

/* Whether the 592 bytes are a VALUE by the rules of wire.decode, whole, of this tenant. */
static int is_value(const uint8_t *message, unsigned tenant) {
    unsigned fragment = load16(message + AT_FRAGMENT), fragments = load16(message + AT_FRAGMENTS);
    unsigned value_bytes = load16(message + AT_VALUE_BYTES);
    return message[AT_VERSION] == VERSION && message[AT_OP] == OP_VALUE && fragment < fragments &&
           (value_bytes == VALUE_BYTES || (value_bytes < VALUE_BYTES && fragment + 1 == fragments)) &&
           load16(message + AT_TENANT) == tenant;
}

/* Find out whose the first message is. 1: a fetch whose write is known to be that, or not known at all and this is
   fragment 0; 0: neither; -1: exception. */
static int begin_run(Run *run, const uint8_t *message, PyObject *active) {
    run->flags = load16(message + AT_FLAGS);
    run->fragments = load16(message + AT_FRAGMENTS);
    run->content = load64(message + AT_CONTENT);
    run->epoch = message[AT_EPOCH];
    memcpy(run->key, message + AT_KEY, KEY_BYTES);
    PyObject *key = PyBytes_FromStringAndSize((const char *)run->key, KEY_BYTES);
    if (key == NULL) return -1;
    run->fetch = PyDict_GetItemWithError(active, key);
    Py_DECREF(key);
    if (run->fetch == NULL) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(run->fetch);
    PyObject *content = PyObject_GetAttr(run->fetch, name_content);
    if (content == NULL) return -1;
    uint64_t known = PyLong_AsUnsignedLongLong(content);
    Py_DECREF(content);
    if (known == UINT64_MAX && PyErr_Occurred()) return -1;
    run->is_probe = known == 0;
    if (run->is_probe ? load16(message + AT_FRAGMENT) != 0 : known != run->content) return 0;
    long long fragments = number_of(run->fetch, name_fragments), flags = number_of(run->fetch, name_flags);
    if (fragments < 0 || flags < 0) return -1;
    if (!run->is_probe && fragments != run->fragments) return 0;
    run->fetch_flags = (unsigned)flags;
    run->requests = PyObject_GetAttr(run->fetch, name_requests);
    if (run->requests == NULL) return -1;
    if (!PyList_CheckExact(run->requests)) return 0;
    if (!run->is_probe) {
        PyObject *buffer = PyObject_GetAttr(run->fetch, name_buffer);
        if (buffer == NULL) return -1;
        run->has_buffer = PyObject_GetBuffer(buffer, &run->buffer, PyBUF_WRITABLE) == 0;
        Py_DECREF(buffer);
        if (!run->has_buffer) return -1;
    }
    run->sealed = PyByteArray_FromStringAndSize(NULL, AT_TAG - AT_TENANT + VALUE_BYTES);
    return run->sealed == NULL ? -1 : 1;
}

static int belongs(const Run *run, const uint8_t *message) {
    return is_value(message, run->tenant) && load16(message + AT_FLAGS) == run->flags &&
           message[AT_EPOCH] == run->epoch && load16(message + AT_FRAGMENTS) == run->fragments &&
           load64(message + AT_CONTENT) == run->content &&
           memcmp(message + AT_KEY, run->key, KEY_BYTES) == 0;
}

/* Whether the value was written under the secret: 1, 0, or -1 with an exception. The hash is hashlib's. */
static int is_genuine(const Run *run, const uint8_t *message) {
    size_t value_bytes = load16(message + AT_VALUE_BYTES), place_bytes = AT_TAG - AT_TENANT;
    uint8_t *sealed = (uint8_t *)PyByteArray_AS_STRING(run->sealed);
    memcpy(sealed, message + AT_TENANT, place_bytes);
    memcpy(sealed + place_bytes, message + HEADER_BYTES, value_bytes);
    memset(sealed + place_bytes + value_bytes, 0, VALUE_BYTES - value_bytes);
    PyObject *hash = PyObject_CallMethodNoArgs(run->tags, name_copy);
    if (hash == NULL) return -1;
    PyObject *done = PyObject_CallMethodOneArg(hash, name_update, run->sealed);
    PyObject *tag = done == NULL ? NULL : PyObject_CallMethodNoArgs(hash, name_digest);
    Py_XDECREF(done);
    Py_DECREF(hash);
    if (tag == NULL) return -1;
    int differs = !PyBytes_CheckExact(tag) || PyBytes_GET_SIZE(tag) != TAG_BYTES;
    if (!differs) {
        const uint8_t *right = (const uint8_t *)PyBytes_AS_STRING(tag);
        for (int i = 0; i < TAG_BYTES; i++) differs |= right[i] ^ message[AT_TAG + i];
    }
    Py_DECREF(tag);
    return !differs;
}

/* Whether a request is in the lane of those before it: 1, 0, or -1 with an exception. */
static int is_in_lane(Run *run, PyObject *request) {
    PyObject *lane = PyObject_GetAttr(request, name_lane);
    if (lane == NULL) return -1;
    if (run->lane == NULL && lane != Py_None) run->lane = Py_NewRef(lane);
    Py_DECREF(lane);
    return lane == run->lane;
}

/* Take one message: 1, or 0 if it is not an ordinary answer to a request of this fetch, or -1. */
static int take_one(Run *run, const uint8_t *message, PyObject *taken, PyObject *backlogs) {
    Py_ssize_t fragment = load16(message + AT_FRAGMENT), at = fragment * VALUE_BYTES;
    Py_ssize_t value_bytes = load16(message + AT_VALUE_BYTES);
    if (fragment >= PyList_GET_SIZE(run->requests)) return 0;
    if (!run->is_probe && at + value_bytes > run->buffer.len) return 0;
    PyObject *request = PyList_GET_ITEM(run->requests, fragment);
    Py_INCREF(request);
    int result = truth_of(request, name_done);
    long long flags = result == 0 ? number_of(request, name_flags) : 0;
    if (result != 0 || flags < 0) {
        result = result == 1 ? 0 : -1;
    } else if ((result = is_in_lane(run, request)) <= 0) {
        /* another lane's windows are settled by themselves */
    } else if ((run->fetch_flags | (unsigned)flags) & FLAG_BYPASS & ~run->flags) {
        result = 0;
    } else if ((result = is_genuine(run, message)) == 1) {
        if (!run->is_probe)
            memcpy((uint8_t *)run->buffer.buf + at, message + HEADER_BYTES, (size_t)value_bytes);
        PyObject *backlog = PyLong_FromLong(load16(message + AT_BACKLOG_MS));
        if (backlog == NULL || PyObject_SetAttr(request, name_done, Py_True) ||
            PyList_Append(taken, request) || PyList_Append(backlogs, backlog))
            result = -1;
        else if (fragment + 1 == run->fragments)
            run->end = at + value_bytes;
        Py_XDECREF(backlog);
    }
    Py_DECREF(request);
    return result;
}

/* take_values(datagrams, at, active, tenant, tags) -> None, or (fetch, requests, backlogs in ms, flags, epoch, end
   of the block or 0) of as many datagrams from there on as answer requests of one fetch in one lane; their values are in its
   buffer, and the requests are done. Of a fetch whose write was not known it is one, the probe's, and its value is in no
   buffer yet. */
PyObject *weir_take_values(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams, *active, *tags;
    Py_ssize_t at;
    unsigned tenant;
    if (!PyArg_ParseTuple(arguments, "OnO!IO", &datagrams, &at, &PyDict_Type, &active, &tenant, &tags)) return NULL;
    if (!PyList_CheckExact(datagrams)) Py_RETURN_NONE;
    if (at < 0 || at >= PyList_GET_SIZE(datagrams))
        return PyErr_Format(PyExc_IndexError, "there is no datagram %zd", at);
    const uint8_t *message = message_at(datagrams, at, MESSAGE_BYTES);
    if (message == NULL || !is_value(message, tenant)) Py_RETURN_NONE;
    Run run = {.tags = tags, .tenant = tenant};
    PyObject *taken = PyList_New(0), *backlogs = PyList_New(0), *result = NULL;
    int state = taken == NULL || backlogs == NULL ? -1 : begin_run(&run, message, active);
    while (state == 1 && at < PyList_GET_SIZE(datagrams)) {
        PyObject *held = PyList_GET_ITEM(datagrams, at);
        Py_INCREF(held);
        message = message_at(datagrams, at, MESSAGE_BYTES);
        state = message != NULL && belongs(&run, message) ? take_one(&run, message, taken, backlogs) : 0;
        Py_DECREF(held);
        at++;
        if (run.is_probe) break;
    }
    if (state >= 0 && PyList_GET_SIZE(taken) > 0)
        result = Py_BuildValue("(OOOIIn)", run.fetch, taken, backlogs, run.flags, (unsigned)run.epoch, run.end);
    else if (state >= 0)
        result = Py_NewRef(Py_None);
    end_run(&run);
    Py_XDECREF(taken);
    Py_XDECREF(backlogs);
    return result;
}

/* encode_gets(any of them, encoded; requests, flags of all, sequence) -> their GETs, numbered from there on. */
PyObject *weir_encode_gets(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_buffer alike;
    PyObject *requests;
    unsigned flags;
    unsigned long long sequence;
    if (!PyArg_ParseTuple(arguments, "y*O!IK", &alike, &PyList_Type, &requests, &flags, &sequence)) return NULL;
    PyObject *gets = NULL;
    if (alike.len != HEADER_BYTES) {
        PyErr_Format(PyExc_ValueError, "a GET has %d bytes, not %zd", HEADER_BYTES, alike.len);
    } else {
        gets = PyList_New(0);
    }
    for (Py_ssize_t i = 0; gets != NULL && i < PyList_GET_SIZE(requests); i++) {
        PyObject *request = PyList_GET_ITEM(requests, i);
        Py_INCREF(request);
        long long own = number_of(request, name_flags);
        long long fragment = own < 0 ? -1 : number_of(request, name_fragment);
        int again = fragment < 0 ? -1 : truth_of(request, name_tries);
        Py_DECREF(request);
        PyObject *get = again < 0 ? NULL : PyBytes_FromStringAndSize(alike.buf, HEADER_BYTES);
        if (get != NULL) {
            uint8_t *message = (uint8_t *)PyBytes_AS_STRING(get);
            store16(message + AT_FLAGS, flags | (unsigned)own | (again ? FLAG_RETRY : 0));
            store32(message + AT_SEQUENCE, (uint32_t)(sequence + (unsigned long long)i));
            store16(message + AT_FRAGMENT, (unsigned)fragment);
        }
        if (get == NULL || PyList_Append(gets, get)) Py_CLEAR(gets);
        Py_XDECREF(get);
    }
    PyBuffer_Release(&alike);
    return gets;
}
