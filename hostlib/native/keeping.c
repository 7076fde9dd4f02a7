/* PUTs in bursts at a storage node: what hostlib/storage/storage_node.py and hostlib/transport/assembly.py do for one fragment, for
   many of one write. */
#include "layout.h"

/* Whether the bytes of a message are a PUT by the rules of wire.decode, and a whole fragment of a write. */
static int is_put(const uint8_t *message) {
    unsigned fragment = load16(message + AT_FRAGMENT), fragments = load16(message + AT_FRAGMENTS);
    unsigned value_bytes = load16(message + AT_VALUE_BYTES);
    int is_short_last = fragment + 1 == fragments && value_bytes > 0 && value_bytes < VALUE_BYTES;
    return message[AT_VERSION] == VERSION && message[AT_OP] == OP_PUT && fragment < fragments &&
           (value_bytes == VALUE_BYTES || is_short_last) &&
           load64(message + AT_CONTENT) != 0;
}

static int has_right_checksum(const uint8_t *message) {
    return weir_crc32(message + AT_TENANT, MESSAGE_BYTES - AT_TENANT) == load32(message + AT_CHECKSUM);
}

/* Whether two PUTs are of one write and say the same of it. */
static int is_alike(const uint8_t *one, const uint8_t *other) {
    return load16(one + AT_FLAGS) == load16(other + AT_FLAGS) &&
           load16(one + AT_RECOMPUTE_MS) == load16(other + AT_RECOMPUTE_MS) &&
           memcmp(one + AT_DEPTH, other + AT_DEPTH, AT_HOMES - AT_DEPTH) == 0 &&
           load16(one + AT_TENANT) == load16(other + AT_TENANT) &&
           load16(one + AT_FRAGMENTS) == load16(other + AT_FRAGMENTS) &&
           memcmp(one + AT_CONTENT, other + AT_CONTENT, AT_TAG - AT_CONTENT) == 0;
}

/* put_run(datagrams, at) -> (count, which of them is of fragment 0, or count): so many from there on are whole
   fragments of one write, and their checksums are right. */
PyObject *weir_put_run(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams;
    Py_ssize_t at, count = 0, begins = -1;
    if (!PyArg_ParseTuple(arguments, "On", &datagrams, &at)) return NULL;
    Py_ssize_t total = PyList_CheckExact(datagrams) ? PyList_GET_SIZE(datagrams) : at;
    if (at < 0 || at > total) return PyErr_Format(PyExc_IndexError, "there is no datagram %zd", at);
    const uint8_t *first = NULL;
    for (; at + count < total; count++) {
        const uint8_t *message = message_at(datagrams, at + count, MESSAGE_BYTES);
        if (message == NULL || !is_put(message) || (first != NULL && !is_alike(first, message))) break;
        if (!has_right_checksum(message)) break;
        if (first == NULL) first = message;
        if (begins < 0 && load16(message + AT_FRAGMENT) == 0) begins = count;
    }
    return Py_BuildValue("(nn)", count, begins < 0 ? count : begins);
}

static int check_place(PyObject *datagrams, Py_ssize_t at, Py_ssize_t count) {
    if (at >= 0 && count >= 0 && count <= PyList_GET_SIZE(datagrams) && at <= PyList_GET_SIZE(datagrams) - count)
        return 0;
    PyErr_Format(PyExc_IndexError, "there are no %zd datagrams from %zd on", count, at);
    return -1;
}

/* keep(values, datagrams, at, count, fragments) -> how many PUTs of a run were looked at before `values` had all
   fragments. Those that were not there are in `values` by number, each as the datagram that it came in. */
PyObject *weir_keep(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *values, *datagrams;
    Py_ssize_t at, count, fragments, done = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!nnn", &PyDict_Type, &values, &PyList_Type, &datagrams, &at, &count,
                          &fragments))
        return NULL;
    if (check_place(datagrams, at, count)) return NULL;
    while (done < count && PyDict_GET_SIZE(values) < fragments) {
        const uint8_t *message = message_at(datagrams, at + done, MESSAGE_BYTES);
        if (message == NULL) return PyErr_Format(PyExc_ValueError, "datagram %zd is no PUT", at + done);
        PyObject *number = PyLong_FromLong(load16(message + AT_FRAGMENT));
        PyObject *kept = number == NULL
                             ? NULL
                             : PyDict_SetDefault(values, number, PyList_GET_ITEM(datagrams, at + done));
        Py_XDECREF(number);
        if (kept == NULL) return NULL;
        done++;
    }
    return PyLong_FromSsize_t(done);
}

typedef struct {
    const uint8_t *value, *tag;
    size_t value_bytes;
} Fragment;

/* What is kept of a fragment: a datagram, or, from Python, value and tag. 0, or -1 with an exception. */
static int read_fragment(Fragment *fragment, PyObject *values, Py_ssize_t number) {
    PyObject *key = PyLong_FromSsize_t(number);
    PyObject *kept = key == NULL ? NULL : PyDict_GetItemWithError(values, key);
    Py_XDECREF(key);
    if (kept != NULL && PyBytes_CheckExact(kept) && PyBytes_GET_SIZE(kept) == MESSAGE_BYTES) {
        const uint8_t *message = (const uint8_t *)PyBytes_AS_STRING(kept);
        *fragment = (Fragment){message + HEADER_BYTES, message + AT_TAG, load16(message + AT_VALUE_BYTES)};
        if (fragment->value_bytes <= VALUE_BYTES) return 0;
    } else if (kept != NULL && PyTuple_CheckExact(kept) && PyTuple_GET_SIZE(kept) == 2) {
        PyObject *value = PyTuple_GET_ITEM(kept, 0), *tag = PyTuple_GET_ITEM(kept, 1);
        if (PyBytes_CheckExact(value) && PyBytes_CheckExact(tag) && PyBytes_GET_SIZE(tag) == TAG_BYTES) {
            *fragment = (Fragment){(const uint8_t *)PyBytes_AS_STRING(value),
                                   (const uint8_t *)PyBytes_AS_STRING(tag), (size_t)PyBytes_GET_SIZE(value)};
            if (fragment->value_bytes <= VALUE_BYTES) return 0;
        }
    }
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "fragment %zd is not there", number);
    return -1;
}

/* join(values, fragments) -> the block's content, and its tags */
PyObject *weir_join(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *values;
    Py_ssize_t fragments;
    if (!PyArg_ParseTuple(arguments, "O!n", &PyDict_Type, &values, &fragments)) return NULL;
    if (fragments < 1 || fragments > MOST_FRAGMENTS)
        return PyErr_Format(PyExc_ValueError, "a block has no %zd fragments", fragments);
    Fragment last;
    if (read_fragment(&last, values, fragments - 1)) return NULL;
    size_t before = (size_t)(fragments - 1) * VALUE_BYTES;
    PyObject *content = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(before + last.value_bytes));
    PyObject *tags = PyBytes_FromStringAndSize(NULL, fragments * TAG_BYTES);
    int failed = content == NULL || tags == NULL;
    for (Py_ssize_t i = 0; !failed && i < fragments; i++) {
        Fragment one;
        failed = read_fragment(&one, values, i);
        if (!failed && i + 1 < fragments && one.value_bytes != VALUE_BYTES) {
            PyErr_Format(PyExc_ValueError, "fragment %zd is too short", i);
            failed = 1;
        }
        if (failed) break;
        memcpy(PyBytes_AS_STRING(content) + (size_t)i * VALUE_BYTES, one.value, one.value_bytes);
        memcpy(PyBytes_AS_STRING(tags) + i * TAG_BYTES, one.tag, TAG_BYTES);
    }
    PyObject *result = failed ? NULL : PyTuple_Pack(2, content, tags);
    Py_XDECREF(content);
    Py_XDECREF(tags);
    return result;
}

/* encode_acks(PUTs, at, count, flags, write or 0 for each one's own, epoch, backlog_ms, replies, reason): their
   PUT_ACKs, or (a reason other than 0) their REFUSEDs, are appended to `replies`. */
PyObject *weir_encode_acks(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams, *replies;
    Py_ssize_t at, count;
    unsigned flags, epoch, backlog_ms, reason;
    unsigned long long write;
    if (!PyArg_ParseTuple(arguments, "O!nnIKIIO!I", &PyList_Type, &datagrams, &at, &count, &flags, &write, &epoch,
                          &backlog_ms, &PyList_Type, &replies, &reason))
        return NULL;
    if (check_place(datagrams, at, count)) return NULL;
    for (Py_ssize_t i = at; i < at + count; i++) {
        const uint8_t *put = message_at(datagrams, i, MESSAGE_BYTES);
        if (put == NULL) return PyErr_Format(PyExc_ValueError, "datagram %zd is no PUT", i);
        PyObject *reply = PyBytes_FromStringAndSize((const char *)put, HEADER_BYTES);
        if (reply == NULL) return NULL;
        uint8_t *ack = (uint8_t *)PyBytes_AS_STRING(reply);
        ack[AT_OP] = reason == 0 ? OP_PUT_ACK : OP_REFUSED;
        store16(ack + AT_FLAGS, flags);
        store16(ack + AT_BACKLOG_MS, backlog_ms);
        store32(ack + AT_GENERATION, reason);
        memset(ack + AT_HOMES, 0, AT_EPOCH - AT_HOMES);
        ack[AT_EPOCH] = (uint8_t)epoch;
        store32(ack + AT_CHECKSUM, 0);
        store16(ack + AT_VALUE_BYTES, 0);
        if (write != 0) store64(ack + AT_CONTENT, write);
        memset(ack + AT_TAG, 0, TAG_BYTES);
        int failed = PyList_Append(replies, reply);
        Py_DECREF(reply);
        if (failed) return NULL;
    }
    Py_RETURN_NONE;
}

/* copy(bytes) -> the same bytes, as a new object: copied without the interpreter's lock, as what is copied may have to
   be read from a disk first. */
PyObject *weir_copy(PyObject *module, PyObject *from) {
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(from, &view, PyBUF_SIMPLE)) return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, view.len);
    if (made != NULL) {
        char *to = PyBytes_AS_STRING(made);
        Py_BEGIN_ALLOW_THREADS memcpy(to, view.buf, (size_t)view.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    return made;
}
