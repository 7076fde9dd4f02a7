/* Where the fields of a message are (hostlib/wire.py has the picture); a test compares the numbers. */
#ifndef WEIR_LAYOUT_H
#define WEIR_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum {
    AT_VERSION = 0,
    AT_OP = 1,
    AT_FLAGS = 2,
    AT_BACKLOG_MS = 4,
    AT_SEQUENCE = 8,
    AT_GENERATION = 12,
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
    HEADER_BYTES = 80,
    VALUE_BYTES = 512,
    MESSAGE_BYTES = HEADER_BYTES + VALUE_BYTES,
    TAG_BYTES = 16,
    KEY_BYTES = 16,
    VERSION = 2,
    OP_GET = 1,
    OP_VALUE = 2,
    FLAG_RETRY = 0x0001,
    FLAG_BYPASS = 0x0002,
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

PyObject *weir_receive(PyObject *module, PyObject *arguments);
PyObject *weir_send(PyObject *module, PyObject *arguments);
PyObject *weir_get_run(PyObject *module, PyObject *arguments);
PyObject *weir_encode_values(PyObject *module, PyObject *arguments);
PyObject *weir_encode_gets(PyObject *module, PyObject *arguments);
PyObject *weir_take_values(PyObject *module, PyObject *arguments);
PyObject *weir_take(PyObject *module, PyObject *arguments);
PyObject *weir_settle(PyObject *module, PyObject *arguments);

int weir_prepare_crc(void);
uint32_t weir_crc32(const uint8_t *data, size_t length);
int weir_prepare_names(void);
int weir_prepare_lanes(PyObject *module);

#endif
