/* Where the fields of a message are (hostlib/protocol/wire.py has the picture); a test compares the numbers. */
#ifndef WEIR_LAYOUT_H
#define WEIR_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#ifndef WEIR_VALUE_BYTES /* hostlib/protocol/value_size.py: there is a shared object for each size */
#define WEIR_VALUE_BYTES 512
#endif

enum {
    AT_VERSION = 0,
    AT_OP = 1,
    AT_FLAGS = 2,
    AT_BACKLOG_MS = 4,
    AT_RECOMPUTE_MS = 6,
    AT_SEQUENCE = 8,
    AT_GENERATION = 12,
    AT_DEPTH = 16,
    AT_CHAIN_BLOCKS = 18,
    AT_PARENT = 20,
    AT_HOMES = 24,
    AT_EPOCH = 27,
    AT_CHECKSUM = 28,
    AT_TENANT = 32,
    AT_FRAGMENT = 34,
    AT_FRAGMENTS = 36,
    AT_VALUE_BYTES = 38,
    AT_CONTENT = 40,
    AT_KEY = 48,
    AT_TAG = 64,
    FRAME_HEADER_BYTES = 42,
    HEADER_BYTES = 80,
    LIST_BYTES = 512,
    VALUE_BYTES = WEIR_VALUE_BYTES,
    MESSAGE_BYTES = HEADER_BYTES + VALUE_BYTES,
    TAG_BYTES = 16,
    MOST_FRAGMENTS = 0xFFFF,
    KEY_BYTES = 16,
    TAG_STATE_BYTES = 128, /* of a hash that has read the key, and of one of leaves */
    VERSION = 2,
    COMPLETE = -1, /* in place of where the probe of a fetch is */
    LEARNED = -2,
    OP_GET = 1,
    OP_VALUE = 2,
    OP_PUT = 4,
    OP_PUT_ACK = 5,
    OP_REFUSED = 6,
    FLAG_RETRY = 0x0001,
    FLAG_BYPASS = 0x0002,
    FLAG_FROM_POOL = 0x0004,
    FLAG_MERGED = 0x0008,
    FLAG_FILL = 0x0010,
    FLAG_PUSHED = 0x0040,
    FLAG_HELD = 0x0100,
    FLAG_REPAIR = 0x0200,
};

static inline uint16_t load16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline void store16(uint8_t *at, unsigned value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void store32(uint8_t *at, uint32_t value) {
    store16(at, value >> 16);
    store16(at + 2, value & 0xFFFF);
}

static inline uint32_t load32(const uint8_t *at) { return (uint32_t)load16(at) << 16 | load16(at + 2); }

static inline uint64_t load64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | at[i];
    return value;
}

static inline void store64(uint8_t *at, uint64_t value) {
    store32(at, (uint32_t)(value >> 32));
    store32(at + 4, (uint32_t)value);
}

/* The bytes of the datagram at a place of a list, if it is a message of this length; NULL (without an
   exception) for anything else. */
static inline const uint8_t *message_at(PyObject *datagrams, Py_ssize_t place, Py_ssize_t length) {
    PyObject *datagram = PyList_GET_ITEM(datagrams, place);
    if (!PyBytes_CheckExact(datagram) || PyBytes_GET_SIZE(datagram) != length) return NULL;
    return (const uint8_t *)PyBytes_AS_STRING(datagram);
}

/* Attributes of Python's objects, by their public names. */
enum { MOST_ATTRIBUTES = 16 };
typedef struct {
    const char *const *names;
    PyObject *interned[MOST_ATTRIBUTES]; /* NULL before it is asked for */
} Attributes;

/* Borrowed from the object, until it has another; NULL with an exception. */
PyObject *weir_attribute(Attributes *attributes, PyObject *object, int which);
/* `value` is given away; 0, or -1 with an exception, also where it is NULL. */
int weir_set_attribute(Attributes *attributes, PyObject *object, int which, PyObject *value);
/* An int from 0 on; -1 with an exception. */
long long weir_number(Attributes *attributes, PyObject *object, int which);
int weir_set_number(Attributes *attributes, PyObject *object, int which, long long number);

PyObject *weir_receive(PyObject *module, PyObject *arguments);
PyObject *weir_total(PyObject *module, PyObject *datagrams);
PyObject *weir_send(PyObject *module, PyObject *arguments);
PyObject *weir_serve_gets(PyObject *module, PyObject *arguments);
PyObject *weir_encode_gets(PyObject *module, PyObject *arguments);
PyObject *weir_new_requests(PyObject *module, PyObject *arguments);
PyObject *weir_tag_state(PyObject *module, PyObject *key);
PyObject *weir_tags_of(PyObject *module, PyObject *arguments);
PyObject *weir_crc32_of(PyObject *module, PyObject *arguments);
PyObject *weir_take_values(PyObject *module, PyObject *arguments);
PyObject *weir_encode_puts(PyObject *module, PyObject *arguments);
PyObject *weir_take_acks(PyObject *module, PyObject *arguments);
PyObject *weir_put_run(PyObject *module, PyObject *arguments);
PyObject *weir_keep(PyObject *module, PyObject *arguments);
PyObject *weir_join(PyObject *module, PyObject *arguments);
PyObject *weir_encode_acks(PyObject *module, PyObject *arguments);
PyObject *weir_copy(PyObject *module, PyObject *from);
PyObject *weir_drop(PyObject *module, PyObject *requests);

int weir_prepare_crc(void);
uint32_t weir_crc32(const uint8_t *data, size_t length);
int weir_prepare_tags(void);
int weir_prepare_answers(void);
/* The tags of messages with a value whose padding is zeros. */
void weir_tags(const uint8_t *keyed, const uint8_t *const messages[], size_t count, uint8_t (*tags)[TAG_BYTES]);

#endif
