/* GETs in bursts, as a client sends them: what hostlib/client/fetch.py does for one fetch, for those of many. */
#include "lanes.h"

enum { ASKING_BLOCK, ASKING_CONTENT, ASKING_EPOCH, ASKING_FIRST, ASKING_FLAGS, ASKING_FRAGMENTS, ASKING_STARTED };
static const char *const asking_names[] = {
    "block", "content", "asked_epoch", "first_sequence", "flags", "fragments", "started_s",
};
static Attributes asking = {.names = asking_names};
enum { BLOCK_KEY, BLOCK_DEPTH, BLOCK_CHAIN, BLOCK_PARENT, BLOCK_RECOMPUTE, BLOCK_HOMES, BLOCK_FIELDS };

typedef struct {
    PyObject *now;
    unsigned tenant, epoch;
} Asker;

/* A field of a hostlib.protocol.transfer.BlockRef; -1 with an exception. */
static long long field_of(PyObject *block, int which, long long most) {
    long long number = PyLong_AsLongLong(PyTuple_GET_ITEM(block, which));
    if ((number < 0 || number > most) && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%lld does not fit its field of a GET", number);
    return number < 0 || number > most ? -1 : number;
}

/* The GETs of a fetch, but for what differs between them; 0, or -1 with an exception. */
static int begin_gets(uint8_t *get, unsigned *flags, PyObject *fetch, uint32_t sequence, const Asker *asker) {
    PyObject *block = weir_attribute(&asking, fetch, ASKING_BLOCK);
    PyObject *content = block == NULL ? NULL : weir_attribute(&asking, fetch, ASKING_CONTENT);
    PyObject *started = content == NULL ? NULL : weir_attribute(&asking, fetch, ASKING_STARTED);
    PyObject *epoch = started == NULL ? NULL : weir_attribute(&asking, fetch, ASKING_EPOCH);
    if (epoch == NULL) return -1;
    if (!PyTuple_Check(block) || PyTuple_GET_SIZE(block) != BLOCK_FIELDS) {
        PyErr_Format(PyExc_TypeError, "a fetch is of a BlockRef");
        return -1;
    }
    PyObject *key = PyTuple_GET_ITEM(block, BLOCK_KEY);
    if (!PyBytes_CheckExact(key) || PyBytes_GET_SIZE(key) != KEY_BYTES) {
        PyErr_Format(PyExc_ValueError, "this is no fetch of a key of %d bytes", KEY_BYTES);
        return -1;
    }
    if (started == Py_None &&
        (weir_set_attribute(&asking, fetch, ASKING_STARTED, Py_NewRef(asker->now)) ||
         weir_set_attribute(&asking, fetch, ASKING_FIRST, PyLong_FromUnsignedLong(sequence))))
        return -1;
    long asked_epoch = PyLong_AsLong(epoch);
    if (asked_epoch < 0) {
        if (PyErr_Occurred()) return -1;
        asked_epoch = (long)asker->epoch;
        if (weir_set_number(&asking, fetch, ASKING_EPOCH, asked_epoch)) return -1;
    }
    uint64_t write = PyLong_AsUnsignedLongLong(content);
    if (write == UINT64_MAX && PyErr_Occurred()) return -1;
    long long own = weir_number(&asking, fetch, ASKING_FLAGS);
    long long fragments = own < 0 ? -1 : weir_number(&asking, fetch, ASKING_FRAGMENTS);
    long long depth = fragments < 0 ? -1 : field_of(block, BLOCK_DEPTH, 0xFFFF);
    long long chain = depth < 0 ? -1 : field_of(block, BLOCK_CHAIN, 0xFFFF);
    long long parent = chain < 0 ? -1 : field_of(block, BLOCK_PARENT, 0xFFFFFFFF);
    long long recompute_ms = parent < 0 ? -1 : field_of(block, BLOCK_RECOMPUTE, INT64_MAX);
    if (recompute_ms < 0) return -1;
    memset(get, 0, HEADER_BYTES);
    get[AT_VERSION] = VERSION;
    get[AT_OP] = OP_GET;
    store16(get + AT_RECOMPUTE_MS, (unsigned)(recompute_ms < 0xFFFF ? recompute_ms : 0xFFFF));
    store16(get + AT_DEPTH, (unsigned)depth);
    store16(get + AT_CHAIN_BLOCKS, (unsigned)chain);
    store32(get + AT_PARENT, (uint32_t)parent);
    get[AT_EPOCH] = (uint8_t)asked_epoch;
    store16(get + AT_TENANT, asker->tenant);
    store16(get + AT_FRAGMENTS, (unsigned)fragments);
    store64(get + AT_CONTENT, write);
    memcpy(get + AT_KEY, PyBytes_AS_STRING(key), KEY_BYTES);
    *flags = (unsigned)own;
    return 0;
}

/* encode_gets(requests, at, class of fetches, sequence, now_s, tenant, epoch) -> the GETs of those from there on that
   belong to fetches, numbered from `sequence` on; a fetch that had none before began now. */
PyObject *weir_encode_gets(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *requests, *class;
    Py_ssize_t at;
    unsigned long long sequence;
    Asker asker;
    if (!PyArg_ParseTuple(arguments, "O!nOKO!II", &PyList_Type, &requests, &at, &class, &sequence, &PyFloat_Type,
                          &asker.now, &asker.tenant, &asker.epoch))
        return NULL;
    if (at < 0) return PyErr_Format(PyExc_IndexError, "there is no request %zd", at);
    PyObject *gets = PyList_New(0), *fetch = NULL;
    uint8_t template[HEADER_BYTES];
    unsigned flags = 0;
    for (; gets != NULL && at < PyList_GET_SIZE(requests); at++, sequence++) {
        Request *request = weir_as_request(PyList_GET_ITEM(requests, at));
        if (request == NULL) break;
        PyObject *owner = request->owner;
        if (owner == NULL || (PyObject *)Py_TYPE(owner) != class) break;
        if (owner != fetch && begin_gets(template, &flags, owner, (uint32_t)sequence, &asker)) break;
        fetch = owner;
        PyObject *get = PyBytes_FromStringAndSize((const char *)template, HEADER_BYTES);
        if (get == NULL) break;
        uint8_t *message = (uint8_t *)PyBytes_AS_STRING(get);
        store16(message + AT_FLAGS, flags | request->flags | (request->tries > 0 ? FLAG_RETRY : 0));
        store32(message + AT_SEQUENCE, (uint32_t)sequence);
        store16(message + AT_FRAGMENT, request->fragment);
        int failed = PyList_Append(gets, get);
        Py_DECREF(get);
        if (failed) break;
    }
    if (PyErr_Occurred()) Py_CLEAR(gets);
    return gets;
}
