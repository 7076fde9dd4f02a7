/* What a datagram goes through before it waits for its socket: hostlib/udp_checksum.py says why. */
#include "layout.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { UDP_HEADER_BYTES = 8 };

/* Added to `carries` is how often it ran over. */
static uint64_t add_words(uint64_t sum, uint64_t *carries, const uint8_t *data, size_t length) {
    for (; length >= 8; data += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        *carries += __builtin_add_overflow(sum, word, &sum);
    }
    return sum;
}

/* Whether the UDP checksum of a request is FFFF. The order of the bytes in a word makes no difference to that (RFC
   1071), and 2^64 - 1 is a multiple of FFFF. Requests and `headers` are whole words of 8 bytes. */
static int is_ffff(uint64_t headers, const uint8_t *message, size_t length) {
    uint64_t carries = 0, sum = add_words(headers, &carries, message, length);
    return (sum % 0xFFFF + carries) % 0xFFFF == 0;
}

/* What the checksum covers besides a payload of this length, as one sum. */
static uint64_t sum_headers(struct in_addr source, struct in_addr destination, size_t length) {
    uint64_t carries = 0;
    uint16_t udp_length = htons((uint16_t)(UDP_HEADER_BYTES + length));
    uint16_t words[12] = {0, 0, 0, 0, htons(IPPROTO_UDP), udp_length, htons(KV_PORT), htons(KV_PORT), udp_length};
    memcpy(words, &source, sizeof source);
    memcpy(words + 2, &destination, sizeof destination);
    uint64_t sum = add_words(0, &carries, (const uint8_t *)words, sizeof words);
    return sum % 0xFFFF + carries;
}

static int is_request(const uint8_t *message, Py_ssize_t length) {
    return (length == HEADER_BYTES && message[AT_OP] == OP_GET) || (length == MESSAGE_BYTES && message[AT_OP] == OP_PUT);
}

/* Takes the place of a request in the list; 0, or -1 with an exception. */
static int replace(PyObject *datagrams, Py_ssize_t at, const uint8_t *message, Py_ssize_t length) {
    PyObject *other = PyBytes_FromStringAndSize((const char *)message, length);
    if (other == NULL) return -1;
    uint8_t *generation = (uint8_t *)PyBytes_AS_STRING(other) + AT_GENERATION;
    store32(generation, load32(generation) ^ 1);
    return PyList_SetItem(datagrams, at, other);
}

/* prepare(datagrams, source, destination) -> their bytes. Requests in the list that a switch between these addresses
   would take for damaged are replaced. */
PyObject *weir_prepare(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *datagrams;
    const char *source, *destination;
    struct in_addr from, to;
    if (!PyArg_ParseTuple(arguments, "O!ss", &PyList_Type, &datagrams, &source, &destination)) return NULL;
    if (inet_pton(AF_INET, source, &from) != 1 || inet_pton(AF_INET, destination, &to) != 1)
        return PyErr_Format(PyExc_ValueError, "%s or %s is no IPv4 address", source, destination);
    uint64_t of_get = sum_headers(from, to, HEADER_BYTES), of_put = sum_headers(from, to, MESSAGE_BYTES);
    Py_ssize_t bytes = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(datagrams); i++) {
        PyObject *datagram = PyList_GET_ITEM(datagrams, i);
        if (!PyBytes_CheckExact(datagram)) return PyErr_Format(PyExc_TypeError, "datagrams are bytes");
        const uint8_t *message = (const uint8_t *)PyBytes_AS_STRING(datagram);
        Py_ssize_t length = PyBytes_GET_SIZE(datagram);
        bytes += length;
        if (is_request(message, length) && is_ffff(length == HEADER_BYTES ? of_get : of_put, message, (size_t)length) &&
            replace(datagrams, i, message, length))
            return NULL;
    }
    return PyLong_FromSsize_t(bytes);
}
