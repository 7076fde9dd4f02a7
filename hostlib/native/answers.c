/* GETs in bursts at a storage node: what hostlib/storage/storage_node.py does for one GET of a block in DRAM, for as many as
   come one behind the other. Whatever is out of the ordinary ends a run and is left to Python. */
#include "layout.h"

static PyObject *name_length, *name_move_to_end;

int weir_prepare_answers(void) {
    name_length = PyUnicode_InternFromString("length");
    name_move_to_end = PyUnicode_InternFromString("move_to_end");
    return name_length == NULL || name_move_to_end == NULL ? -1 : 0;
}

/* Whether these 80 bytes are a GET, by the rules of wire.decode. */
static int is_get(const uint8_t *message) {
    unsigned fragment = load16(message + AT_FRAGMENT), fragments = load16(message + AT_FRAGMENTS);
    return message[AT_VERSION] == VERSION && message[AT_OP] == OP_GET &&
           (fragment < fragments || (fragment == 0 && fragments == 0)) &&
           load16(message + AT_VALUE_BYTES) == 0;
}

enum { HELD_WRITE, HELD_CONTENT, HELD_TAGS };
static const char *const held_names[] = {"write", "content", "tags"};
static Attributes held_attributes = {.names = held_names};

typedef struct {
    unsigned fragments;
    uint64_t write;
    const uint8_t *content, *tags;
    size_t content_bytes;
} Block;

typedef struct {
    PyObject *dram, *not_asked, *derive, *place_class, *block_class;
    PyObject *held, *place; /* what `block` is read from, and where that is; NULL before the first */
    int used;               /* whether it was answered from */
    Block block;
    uint8_t key[KEY_BYTES];
    unsigned tenant, epoch, backlog_ms;
    Py_ssize_t retries, bypasses, repairs;
} Shelf;

/* A hostlib.protocol.block.Block: 1; 0 for what can't be one; -1: exception. */
static int read_block(Block *block, PyObject *held) {
    PyObject *write = weir_attribute(&held_attributes, held, HELD_WRITE);
    PyObject *content = write == NULL ? NULL : weir_attribute(&held_attributes, held, HELD_CONTENT);
    PyObject *tags = content == NULL ? NULL : weir_attribute(&held_attributes, held, HELD_TAGS);
    if (tags == NULL) return -1;
    if (!PyLong_CheckExact(write) || !PyBytes_CheckExact(content) || !PyBytes_CheckExact(tags) ||
         PyBytes_GET_SIZE(tags) > MOST_FRAGMENTS * TAG_BYTES)
        return 0;
    block->write = PyLong_AsUnsignedLongLong(write);
    if (block->write == UINT64_MAX && PyErr_Occurred()) return -1;
    block->content = (const uint8_t *)PyBytes_AS_STRING(content);
    block->content_bytes = (size_t)PyBytes_GET_SIZE(content);
    block->tags = (const uint8_t *)PyBytes_AS_STRING(tags);
    block->fragments = (unsigned)(PyBytes_GET_SIZE(tags) / TAG_BYTES);
    return 1;
}

static void let_go(Shelf *shelf) {
    Py_CLEAR(shelf->held);
    Py_CLEAR(shelf->place);
    shelf->used = 0;
}

/* Find the block that a GET asks for: 1; 0 if it is not simply there, in DRAM; -1: exception. */
static int find_block(Shelf *shelf, const uint8_t *get) {
    if (shelf->held != NULL && memcmp(get + AT_KEY, shelf->key, KEY_BYTES) == 0) return 1;
    let_go(shelf);
    memcpy(shelf->key, get + AT_KEY, KEY_BYTES);
    PyObject *place = PyObject_CallFunction(shelf->place_class, "Iy#", shelf->tenant, get + AT_KEY,
                                            (Py_ssize_t)KEY_BYTES);
    if (place == NULL) return -1;
    PyObject *held = PyDict_GetItemWithError(shelf->dram, place);
    int result = held != NULL ? !PySet_GET_SIZE(shelf->not_asked) : PyErr_Occurred() ? -1 : 0;
    if (held != NULL && !result) {
        result = PySet_Contains(shelf->not_asked, place);
        result = result < 0 ? -1 : !result;
    }
    Py_XINCREF(held);
    if (result == 1 && (PyObject *)Py_TYPE(held) != shelf->block_class) { /* one that was there from the start */
        PyObject *length = PyObject_GetAttr(held, name_length);
        Py_SETREF(held, length == NULL ? NULL : PyObject_CallFunctionObjArgs(shelf->derive, place, length, NULL));
        Py_XDECREF(length);
        if (held == NULL)
            result = -1;
        else if ((PyObject *)Py_TYPE(held) != shelf->block_class)
            result = 0;
    }
    if (result == 1) result = read_block(&shelf->block, held);
    if (result == 1) {
        shelf->held = Py_NewRef(held);
        shelf->place = Py_NewRef(place);
    }
    Py_XDECREF(held);
    Py_DECREF(place);
    return result;
}

static void encode_value(uint8_t *reply, const uint8_t *asked, const Shelf *shelf) {
    const Block *block = &shelf->block;
    size_t fragment = load16(asked + AT_FRAGMENT), at = fragment * VALUE_BYTES;
    size_t left = at < block->content_bytes ? block->content_bytes - at : 0;
    size_t value_bytes = left < VALUE_BYTES ? left : VALUE_BYTES;
    memcpy(reply, asked, HEADER_BYTES);
    reply[AT_OP] = OP_VALUE;
    store16(reply + AT_FLAGS, load16(asked + AT_FLAGS) & (FLAG_BYPASS | FLAG_FILL | FLAG_REPAIR));
    store16(reply + AT_BACKLOG_MS, shelf->backlog_ms);
    store32(reply + AT_GENERATION, 0);
    memset(reply + AT_HOMES, 0, AT_EPOCH - AT_HOMES);
    reply[AT_EPOCH] = (uint8_t)shelf->epoch;
    store16(reply + AT_FRAGMENTS, block->fragments);
    store16(reply + AT_VALUE_BYTES, (unsigned)value_bytes);
    store64(reply + AT_CONTENT, block->write);
    memcpy(reply + AT_TAG, block->tags + fragment * TAG_BYTES, TAG_BYTES);
    if (value_bytes > 0) memcpy(reply + HEADER_BYTES, block->content + at, value_bytes);
    memset(reply + HEADER_BYTES + value_bytes, 0, VALUE_BYTES - value_bytes);
    store32(reply + AT_CHECKSUM, weir_crc32(reply + AT_TENANT, MESSAGE_BYTES - AT_TENANT));
}

/* The backlog that is reported is the tenant's, and asked for once; 0, or -1 with an exception. */
static int ask_backlog(Shelf *shelf, PyObject *backlog) {
    PyObject *said = PyObject_CallFunction(backlog, "I", shelf->tenant);
    long long backlog_ms = said == NULL ? -1 : PyLong_AsLongLong(said);
    Py_XDECREF(said);
    if (backlog_ms < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "a backlog of %lld ms", backlog_ms);
    if (backlog_ms < 0) return -1;
    shelf->backlog_ms = (unsigned)(backlog_ms < 0xFFFF ? backlog_ms : 0xFFFF);
    return 0;
}

/* Answer one datagram: 1; 0 if it is no GET of the tenant's that is answered from DRAM with one VALUE; -1: exception. */
static int serve_one(Shelf *shelf, const uint8_t *get, PyObject *begun, PyObject *replies) {
    if (get == NULL || !is_get(get) || load16(get + AT_TENANT) != shelf->tenant) return 0;
    unsigned flags = load16(get + AT_FLAGS);
    if (flags & FLAG_FILL) return 0; /* all fragments are wanted */
    int found = find_block(shelf, get);
    if (found <= 0) return found;
    uint64_t content = load64(get + AT_CONTENT);
    unsigned fragment = load16(get + AT_FRAGMENT), fragments = load16(get + AT_FRAGMENTS);
    if ((content != 0 && content != shelf->block.write) || (fragments != 0 && fragments != shelf->block.fragments) ||
        fragment >= shelf->block.fragments)
        return 0;
    PyObject *reply = PyBytes_FromStringAndSize(NULL, MESSAGE_BYTES);
    if (reply == NULL) return -1;
    encode_value((uint8_t *)PyBytes_AS_STRING(reply), get, shelf);
    int failed = PyList_Append(replies, reply);
    Py_DECREF(reply);
    if (fragment == 0 && !failed) {
        PyObject *place = Py_BuildValue("(Iy#IIk)", (unsigned)shelf->block.fragments, get + AT_KEY,
                                        (Py_ssize_t)KEY_BYTES, (unsigned)load16(get + AT_DEPTH),
                                        (unsigned)load16(get + AT_CHAIN_BLOCKS),
                                        (unsigned long)load32(get + AT_PARENT));
        failed = place == NULL || PyList_Append(begun, place);
        Py_XDECREF(place);
    }
    if (!shelf->used && !failed) { /* the block used last */
        PyObject *moved = PyObject_CallMethodOneArg(shelf->dram, name_move_to_end, shelf->place);
        failed = moved == NULL;
        Py_XDECREF(moved);
        shelf->used = 1;
    }
    shelf->retries += (flags & FLAG_RETRY) != 0;
    shelf->bypasses += (flags & FLAG_BYPASS) != 0;
    shelf->repairs += (flags & FLAG_REPAIR) != 0;
    return failed ? -1 : 1;
}

/* serve_gets(datagrams, at, shelf, epoch, backlog, replies) -> None, or (count, retries, bypasses, repairs, begun) of
   as many datagrams from there on as are GETs of one tenant for blocks that are in DRAM, none of a switch's for its
   pool; the VALUEs are appended to `replies`. `shelf` is (blocks in DRAM by place, those read ahead, derive, Place,
   Block), backlog(tenant) in ms; `begun` has (fragments of the block, key, depth, chain_blocks, parent) of each GET for
   a first fragment. */
PyObject *weir_serve_gets(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams, *backlog, *replies;
    Py_ssize_t at;
    Shelf shelf = {0};
    if (!PyArg_ParseTuple(arguments, "On(O!O!OOO)IOO!", &datagrams, &at, &PyODict_Type, &shelf.dram, &PySet_Type,
                          &shelf.not_asked, &shelf.derive, &shelf.place_class, &shelf.block_class, &shelf.epoch,
                          &backlog, &PyList_Type, &replies))
        return NULL;
    if (!PyList_CheckExact(datagrams)) Py_RETURN_NONE;
    Py_ssize_t first = at;
    if (at < 0 || at >= PyList_GET_SIZE(datagrams))
        return PyErr_Format(PyExc_IndexError, "there is no datagram %zd", at);
    const uint8_t *get = message_at(datagrams, at, HEADER_BYTES);
    if (get == NULL || !is_get(get)) Py_RETURN_NONE;
    shelf.tenant = load16(get + AT_TENANT);
    PyObject *begun = PyList_New(0), *result = NULL;
    int state = begun == NULL || ask_backlog(&shelf, backlog) ? -1 : 1;
    while (state == 1 && at < PyList_GET_SIZE(datagrams)) {
        PyObject *held = Py_NewRef(PyList_GET_ITEM(datagrams, at));
        state = serve_one(&shelf, message_at(datagrams, at, HEADER_BYTES), begun, replies);
        Py_DECREF(held);
        at += state == 1;
    }
    let_go(&shelf);
    if (state >= 0 && at == first)
        result = Py_NewRef(Py_None);
    else if (state >= 0)
        result = Py_BuildValue("(nnnnO)", at - first, shelf.retries, shelf.bypasses, shelf.repairs, begun);
    Py_XDECREF(begun);
    return result;
}
