/* GETs in bursts: those that a client sends, and the VALUEs with which a storage node answers a run of them. */
#include "layout.h"

/* CRC-32 as zlib has it, sixteen bytes a step: crc_tables[n][byte] is what a byte makes of it n bytes later. */
enum { STEP = 16 };
static uint32_t crc_tables[STEP][256];

int weir_prepare_crc(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        crc_tables[0][i] = value;
    }
    for (int table = 1; table < STEP; table++)
        for (int i = 0; i < 256; i++) {
            uint32_t before = crc_tables[table - 1][i];
            crc_tables[table][i] = before >> 8 ^ crc_tables[0][before & 0xFF];
        }
    return 0;
}

static inline uint32_t four_bytes(const uint8_t *at, uint32_t crc, int later) {
    return crc_tables[later + 3][(crc ^ at[0]) & 0xFF] ^ crc_tables[later + 2][(crc >> 8 ^ at[1]) & 0xFF] ^
           crc_tables[later + 1][(crc >> 16 ^ at[2]) & 0xFF] ^ crc_tables[later][(crc >> 24 ^ at[3]) & 0xFF];
}

uint32_t weir_crc32(const uint8_t *data, size_t length) {
    uint32_t crc = 0xFFFFFFFFu;
    for (; length >= STEP; data += STEP, length -= STEP)
        crc = four_bytes(data, crc, 12) ^ four_bytes(data + 4, 0, 8) ^ four_bytes(data + 8, 0, 4) ^
              four_bytes(data + 12, 0, 0);
    for (; length > 0; data++, length--) crc = crc >> 8 ^ crc_tables[0][(crc ^ *data) & 0xFF];
    return ~crc;
}

/* Whether these 80 bytes are a GET, by the rules of wire.decode. */
static int is_get(const uint8_t *message) {
    unsigned fragment = load16(message + AT_FRAGMENT), fragments = load16(message + AT_FRAGMENTS);
    return message[AT_VERSION] == VERSION && message[AT_OP] == OP_GET &&
           (fragment < fragments || (fragment == 0 && fragments == 0)) &&
           load16(message + AT_VALUE_BYTES) == 0;
}

/* Whether two GETs differ in sequence and fragment only. */
static int is_alike(const uint8_t *one, const uint8_t *other) {
    return memcmp(one, other, AT_SEQUENCE) == 0 &&
           memcmp(one + AT_GENERATION, other + AT_GENERATION, AT_FRAGMENT - AT_GENERATION) == 0 &&
           memcmp(one + AT_FRAGMENTS, other + AT_FRAGMENTS, HEADER_BYTES - AT_FRAGMENTS) == 0;
}

/* get_run(datagrams, at) -> (count, whether one of them asks for fragment 0): so many from there on are GETs
   that differ in sequence and fragment only. 0 for what is no list of bytes. */
PyObject *weir_get_run(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(arguments, "On", &datagrams, &at)) return NULL;
    Py_ssize_t count = 0, total = PyList_CheckExact(datagrams) ? PyList_GET_SIZE(datagrams) : at;
    if (at < 0 || at > total) return PyErr_Format(PyExc_IndexError, "there is no datagram %zd", at);
    const uint8_t *first = NULL;
    int begins = 0;
    for (; at + count < total; count++) {
        const uint8_t *message = message_at(datagrams, at + count, HEADER_BYTES);
        if (message == NULL || !is_get(message) || (first != NULL && !is_alike(first, message))) break;
        if (first == NULL) first = message;
        if (load16(message + AT_FRAGMENT) == 0) begins = 1;
    }
    return Py_BuildValue("(nN)", count, PyBool_FromLong(begins));
}

typedef struct {
    unsigned flags, fragments, epoch, backlog_ms;
    unsigned long long write;
    const uint8_t *content, *tags;
    size_t content_bytes, tags_bytes;
} Block;

static void encode_value(uint8_t *reply, const uint8_t *asked, const Block *block) {
    size_t fragment = load16(asked + AT_FRAGMENT), at = fragment * VALUE_BYTES;
    size_t left = at < block->content_bytes ? block->content_bytes - at : 0;
    size_t value_bytes = left < VALUE_BYTES ? left : VALUE_BYTES;
    memcpy(reply, asked, HEADER_BYTES);
    reply[AT_OP] = OP_VALUE;
    store16(reply + AT_FLAGS, block->flags);
    store16(reply + AT_BACKLOG_MS, block->backlog_ms);
    store32(reply + AT_GENERATION, 0);
    memset(reply + AT_HOMES, 0, AT_EPOCH - AT_HOMES);
    reply[AT_EPOCH] = (uint8_t)block->epoch;
    store16(reply + AT_FRAGMENTS, block->fragments);
    store16(reply + AT_VALUE_BYTES, (unsigned)value_bytes);
    store64(reply + AT_CONTENT, block->write);
    memcpy(reply + AT_TAG, block->tags + fragment * TAG_BYTES, TAG_BYTES);
    if (value_bytes > 0) memcpy(reply + HEADER_BYTES, block->content + at, value_bytes);
    memset(reply + HEADER_BYTES + value_bytes, 0, VALUE_BYTES - value_bytes);
    store32(reply + AT_CHECKSUM, weir_crc32(reply + AT_TENANT, MESSAGE_BYTES - AT_TENANT));
}

/* encode_values(GETs, flags, fragments, write, epoch, backlog_ms, content, tags) -> VALUEs: as wire.encode_value
   for each of a run of GETs. */
PyObject *weir_encode_values(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *gets, *content, *tags;
    Block block;
    if (!PyArg_ParseTuple(arguments, "O!IIKIISS", &PyList_Type, &gets, &block.flags, &block.fragments,
                          &block.write, &block.epoch, &block.backlog_ms, &content, &tags))
        return NULL;
    block.content = (const uint8_t *)PyBytes_AS_STRING(content);
    block.content_bytes = (size_t)PyBytes_GET_SIZE(content);
    block.tags = (const uint8_t *)PyBytes_AS_STRING(tags);
    block.tags_bytes = (size_t)PyBytes_GET_SIZE(tags);
    PyObject *replies = PyList_New(PyList_GET_SIZE(gets));
    for (Py_ssize_t i = 0; replies != NULL && i < PyList_GET_SIZE(replies); i++) {
        const uint8_t *asked = message_at(gets, i, HEADER_BYTES);
        if (asked == NULL || ((size_t)load16(asked + AT_FRAGMENT) + 1) * TAG_BYTES > block.tags_bytes) {
            PyErr_Format(PyExc_ValueError, "datagram %zd asks for nothing in this block", i);
            Py_CLEAR(replies);
            break;
        }
        PyObject *reply = PyBytes_FromStringAndSize(NULL, MESSAGE_BYTES);
        if (reply == NULL) {
            Py_CLEAR(replies);
            break;
        }
        encode_value((uint8_t *)PyBytes_AS_STRING(reply), asked, &block);
        PyList_SET_ITEM(replies, i, reply);
    }
    return replies;
}
