/* PUTs in bursts at a client: what hostlib/client/offers.py does for one fragment that is sent or acknowledged, for many of
   one block. */
#include "lanes.h"

enum { TOGETHER = 16 /* tags are made for so many fragments at a time */ };

typedef struct {
    const uint8_t *template, *content, *tag_state;
    size_t content_bytes;
    PyObject *tags; /* a list with those of fragments that were sent before, else empty ones */
} Block;

static int is_tag(PyObject *tag) { return PyBytes_CheckExact(tag) && PyBytes_GET_SIZE(tag) == TAG_BYTES; }

/* A PUT without its tag and checksum; NULL with an exception. */
static PyObject *begin_put(const Block *block, size_t fragment, unsigned flags, uint32_t sequence) {
    size_t at = fragment * VALUE_BYTES;
    if (at >= block->content_bytes || fragment >= (size_t)PyList_GET_SIZE(block->tags))
        return PyErr_Format(PyExc_ValueError, "the block has no fragment %zu", fragment);
    size_t left = block->content_bytes - at, value_bytes = left < VALUE_BYTES ? left : VALUE_BYTES;
    PyObject *put = PyBytes_FromStringAndSize(NULL, MESSAGE_BYTES);
    if (put == NULL) return NULL;
    uint8_t *message = (uint8_t *)PyBytes_AS_STRING(put);
    memcpy(message, block->template, HEADER_BYTES);
    store16(message + AT_FLAGS, load16(message + AT_FLAGS) | flags);
    store32(message + AT_SEQUENCE, sequence);
    store16(message + AT_FRAGMENT, (unsigned)fragment);
    store16(message + AT_VALUE_BYTES, (unsigned)value_bytes);
    memcpy(message + HEADER_BYTES, block->content + at, value_bytes);
    memset(message + HEADER_BYTES + value_bytes, 0, VALUE_BYTES - value_bytes);
    return put;
}

/* Tags and checksums of at most TOGETHER PUTs; 0, or -1 with an exception. */
static int seal(const Block *block, PyObject *puts, Py_ssize_t from) {
    const uint8_t *untagged[TOGETHER];
    uint8_t tags[TOGETHER][TAG_BYTES];
    size_t count = 0;
    for (Py_ssize_t at = from; at < PyList_GET_SIZE(puts); at++) {
        uint8_t *message = (uint8_t *)PyBytes_AS_STRING(PyList_GET_ITEM(puts, at));
        PyObject *tag = PyList_GET_ITEM(block->tags, load16(message + AT_FRAGMENT));
        if (is_tag(tag))
            memcpy(message + AT_TAG, PyBytes_AS_STRING(tag), TAG_BYTES);
        else
            untagged[count++] = message;
    }
    weir_tags(block->tag_state, untagged, count, tags);
    for (size_t i = 0; i < count; i++) {
        PyObject *tag = PyBytes_FromStringAndSize((const char *)tags[i], TAG_BYTES);
        if (tag == NULL || PyList_SetItem(block->tags, load16(untagged[i] + AT_FRAGMENT), tag)) return -1;
        memcpy((uint8_t *)untagged[i] + AT_TAG, tags[i], TAG_BYTES);
    }
    for (Py_ssize_t at = from; at < PyList_GET_SIZE(puts); at++) {
        uint8_t *message = (uint8_t *)PyBytes_AS_STRING(PyList_GET_ITEM(puts, at));
        store32(message + AT_CHECKSUM, weir_crc32(message + AT_TENANT, MESSAGE_BYTES - AT_TENANT));
    }
    return 0;
}

/* The PUTs of requests from a place on that have the first one's owner, and were sent before as that was or were not.
   NULL with an exception. */
static PyObject *encode_run(PyObject *requests, Py_ssize_t at, uint32_t sequence, const Block *block) {
    PyObject *puts = PyList_New(0), *owner = NULL;
    int failed = puts == NULL, again = 0;
    Py_ssize_t sealed = 0;
    for (; !failed && at < PyList_GET_SIZE(requests); at++, sequence++) {
        const Request *request = weir_as_request(PyList_GET_ITEM(requests, at));
        failed = request == NULL;
        if (failed) break;
        if (owner == NULL) owner = request->owner, again = request->tries > 0;
        if (request->owner == NULL || request->owner != owner || again != (request->tries > 0)) break;
        PyObject *put = begin_put(block, request->fragment, again ? FLAG_RETRY : 0, sequence);
        failed = put == NULL || PyList_Append(puts, put);
        Py_XDECREF(put);
        if (!failed && PyList_GET_SIZE(puts) - sealed == TOGETHER) {
            failed = seal(block, puts, sealed);
            sealed += TOGETHER;
        }
    }
    failed = failed || seal(block, puts, sealed);
    if (failed) Py_CLEAR(puts);
    return puts;
}

/* encode_puts(requests, at, template, sequence, content, tags, tag_state) -> the PUTs of those from there on that are
   of one owner and sent for the first time, or again; numbered from `sequence` on. `template` is any of them;
   `content` is the block's, and `tags`, a list, keeps the tags of its fragments. ValueError */
PyObject *weir_encode_puts(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *requests, *template, *tag_state, *puts = NULL;
    Py_ssize_t at;
    unsigned long long sequence;
    Py_buffer content;
    Block block;
    if (!PyArg_ParseTuple(arguments, "O!nSKy*O!S", &PyList_Type, &requests, &at, &template, &sequence, &content,
                          &PyList_Type, &block.tags, &tag_state))
        return NULL;
    if (at < 0 || PyBytes_GET_SIZE(template) < HEADER_BYTES || PyBytes_GET_SIZE(tag_state) != TAG_STATE_BYTES) {
        PyErr_Format(PyExc_ValueError, "there is no request %zd, or this is no PUT or no tag_state", at);
    } else {
        block.template = (const uint8_t *)PyBytes_AS_STRING(template);
        block.tag_state = (const uint8_t *)PyBytes_AS_STRING(tag_state);
        block.content = content.buf;
        block.content_bytes = (size_t)content.len;
        puts = encode_run(requests, at, (uint32_t)sequence, &block);
    }
    PyBuffer_Release(&content);
    return puts;
}

typedef struct {
    const uint8_t *first;
    PyObject *requests, *over;
    unsigned tenant;
    uint64_t content;
    long long target_ms;
    double now_s;
} Acks;

/* Whether the 80 bytes say no more than that a fragment of this write was received, by the rules of wire.decode. */
static int is_plain_ack(const Acks *acks, const uint8_t *ack) {
    return ack != NULL && ack[AT_VERSION] == VERSION && ack[AT_OP] == OP_PUT_ACK &&
           load16(ack + AT_FRAGMENT) < load16(ack + AT_FRAGMENTS) && load16(ack + AT_VALUE_BYTES) == 0 &&
           (load16(ack + AT_FLAGS) & (FLAG_HELD | FLAG_FROM_POOL)) == 0 &&
           load16(ack + AT_TENANT) == acks->tenant && load64(ack + AT_CONTENT) == acks->content &&
           ack[AT_EPOCH] == acks->first[AT_EPOCH] && memcmp(ack + AT_KEY, acks->first + AT_KEY, KEY_BYTES) == 0;
}

/* 1, or 0 for what is left to Python, or -1 with an exception. */
static int take_ack(Acks *acks, const uint8_t *ack) {
    if (!is_plain_ack(acks, ack)) return 0;
    Py_ssize_t fragment = load16(ack + AT_FRAGMENT);
    unsigned backlog_ms = load16(ack + AT_BACKLOG_MS);
    if (fragment >= PyList_GET_SIZE(acks->requests)) return 0;
    Request *request = weir_as_request(PyList_GET_ITEM(acks->requests, fragment));
    if (request == NULL) return -1;
    if (request->done) return 0;
    Py_INCREF(request);
    int taken = weir_settle(request, acks->now_s, backlog_ms, 0);
    Py_DECREF(request);
    if (taken == 1 && backlog_ms > acks->target_ms) {
        PyObject *one = Py_BuildValue("(nI)", fragment, backlog_ms);
        if (one == NULL || PyList_Append(acks->over, one)) taken = -1;
        Py_XDECREF(one);
    }
    return taken;
}

/* take_acks(datagrams, at, requests of one home, most, tenant, content, now_s, target_ms) -> None, or (count, epoch,
   fragments with backlogs in ms above the target) of as many datagrams from there on, at most `most`, as acknowledge
   requests and say no more than that. The requests are settled in their lanes. */
PyObject *weir_take_acks(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams;
    Py_ssize_t at, most;
    unsigned long long content;
    Acks acks = {0};
    if (!PyArg_ParseTuple(arguments, "OnO!nIKdL", &datagrams, &at, &PyList_Type, &acks.requests, &most, &acks.tenant,
                          &content, &acks.now_s, &acks.target_ms))
        return NULL;
    if (!PyList_CheckExact(datagrams)) Py_RETURN_NONE;
    if (at < 0 || at >= PyList_GET_SIZE(datagrams))
        return PyErr_Format(PyExc_IndexError, "there is no datagram %zd", at);
    acks.content = content;
    acks.first = message_at(datagrams, at, HEADER_BYTES);
    if (acks.first == NULL) Py_RETURN_NONE;
    acks.over = PyList_New(0);
    Py_ssize_t count = 0;
    int epoch = acks.first[AT_EPOCH], state = acks.over == NULL ? -1 : 1;
    while (state == 1 && count < most && at + count < PyList_GET_SIZE(datagrams)) {
        state = take_ack(&acks, message_at(datagrams, at + count, HEADER_BYTES));
        count += state == 1;
    }
    PyObject *result = NULL;
    if (state >= 0) result = count == 0 ? Py_NewRef(Py_None) : Py_BuildValue("(niO)", count, epoch, acks.over);
    Py_XDECREF(acks.over);
    return result;
}
