/* Datagrams in and out, many in a call: the rest of the endpoint is hostlib/transport/endpoint.py. */
#define _GNU_SOURCE
#include "layout.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_RXQ_OVFL
#define SO_RXQ_OVFL 40
#endif

enum {
    SLOTS = 32,
    SLOT_BYTES = 65536 + 640, /* not a power of two, so that slots do not share lines of the cache */
    MOST_CALLS = 4,
    ENOUGH_BYTES = 2 * 65536,
    MOST_SENT = 128,
    BATCH_DATAGRAMS = 64, /* the most that UDP_SEGMENT takes before Linux 6.9 */
    BATCH_BYTES = 65507,  /* the longest datagram, which a batch is to the kernel */
};

/* Pages that are never written take no memory. The interpreter's lock is held while it is in use. */
static uint8_t slots[SLOTS][SLOT_BYTES];

typedef struct {
    PyObject *by_address; /* str -> list of bytes */
    PyObject *latest;     /* borrowed from there: the list of `address` */
    uint32_t address;
    Py_ssize_t received, received_bytes, foreign;
    long long drops; /* -1: nothing was said of them */
} Arrived;

static PyObject *list_of(Arrived *arrived, struct in_addr address) {
    if (arrived->latest != NULL && arrived->address == address.s_addr) return arrived->latest;
    char text[INET_ADDRSTRLEN];
    if (inet_ntop(AF_INET, &address, text, sizeof text) == NULL) return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *name = PyUnicode_FromString(text);
    if (name == NULL) return NULL;
    PyObject *list = PyDict_GetItemWithError(arrived->by_address, name);
    if (list == NULL && !PyErr_Occurred()) {
        list = PyList_New(0);
        if (list != NULL) {
            int failed = PyDict_SetItem(arrived->by_address, name, list);
            Py_DECREF(list); /* the dictionary holds it */
            if (failed) list = NULL;
        }
    }
    Py_DECREF(name);
    arrived->latest = list;
    arrived->address = address.s_addr;
    return list;
}

static size_t read_ancillary(Arrived *arrived, struct msghdr *header) {
    size_t segment = 0;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(header); one != NULL; one = CMSG_NXTHDR(header, one)) {
        uint32_t value;
        if (one->cmsg_len < CMSG_LEN(sizeof value)) continue;
        memcpy(&value, CMSG_DATA(one), sizeof value);
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_RXQ_OVFL) arrived->drops = value;
        if (one->cmsg_level == IPPROTO_UDP && one->cmsg_type == UDP_GRO) segment = value;
    }
    return segment;
}

/* One message of recvmmsg, which may be several datagrams; 0, or -1 with an exception. */
static int take(Arrived *arrived, const uint8_t *data, size_t length, size_t segment,
                const struct sockaddr_in *from, int port) {
    if (segment == 0 || segment > length) segment = length;
    size_t count = length == 0 ? 1 : (length + segment - 1) / segment;
    arrived->received += (Py_ssize_t)count;
    arrived->received_bytes += (Py_ssize_t)length;
    if (from->sin_family != AF_INET || ntohs(from->sin_port) != port) {
        arrived->foreign += (Py_ssize_t)count;
        return 0;
    }
    PyObject *list = list_of(arrived, from->sin_addr);
    if (list == NULL) return -1;
    for (size_t i = 0, start = 0; i < count; i++, start += segment) {
        size_t bytes = length - start < segment ? length - start : segment;
        PyObject *datagram = PyBytes_FromStringAndSize((const char *)data + start, (Py_ssize_t)bytes);
        if (datagram == NULL) return -1;
        int failed = PyList_Append(list, datagram);
        Py_DECREF(datagram);
        if (failed) return -1;
    }
    return 0;
}

static int receive_all(Arrived *arrived, int socket, int port) {
    static struct mmsghdr messages[SLOTS];
    static struct iovec vectors[SLOTS];
    static struct sockaddr_in from[SLOTS];
    static union {
        struct cmsghdr aligned;
        uint8_t bytes[2 * CMSG_SPACE(sizeof(uint32_t))];
    } ancillary[SLOTS];
    static int stale = SLOTS; /* the first ones, which a call may have written to */

    for (int call = 0; call < MOST_CALLS && arrived->received_bytes < ENOUGH_BYTES; call++) {
        for (int i = 0; i < stale; i++) {
            vectors[i] = (struct iovec){slots[i], 65535};
            from[i].sin_family = AF_UNSPEC;
            messages[i].msg_hdr = (struct msghdr){
                .msg_name = &from[i], .msg_namelen = sizeof from[i], .msg_iov = &vectors[i], .msg_iovlen = 1,
                .msg_control = &ancillary[i], .msg_controllen = sizeof ancillary[i],
            };
        }
        int count = recvmmsg(socket, messages, SLOTS, MSG_DONTWAIT, NULL);
        stale = count < 0 ? 1 : count < SLOTS ? count + 1 : SLOTS;
        if (count < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
            continue; /* an ICMP error of an earlier send */
        }
        for (int i = 0; i < count; i++) {
            size_t segment = read_ancillary(arrived, &messages[i].msg_hdr);
            if (take(arrived, slots[i], messages[i].msg_len, segment, &from[i], port)) return -1;
        }
        if (count < SLOTS) return 0;
    }
    return 0;
}

/* receive(socket, port, room) -> ({address: [datagram, ...]}, received, received_bytes, foreign, drops or -1) */
PyObject *weir_receive(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *object, *room; /* the room is for what Python receives */
    int port;
    if (!PyArg_ParseTuple(arguments, "OiO", &object, &port, &room)) return NULL;
    int socket = PyObject_AsFileDescriptor(object);
    if (socket < 0) return NULL;
    Arrived arrived = {.by_address = PyDict_New(), .drops = -1};
    if (arrived.by_address == NULL) return NULL;
    if (receive_all(&arrived, socket, port)) {
        Py_DECREF(arrived.by_address);
        return NULL;
    }
    return Py_BuildValue("(NnnnL)", arrived.by_address, arrived.received, arrived.received_bytes,
                         arrived.foreign, arrived.drops);
}

typedef union {
    struct cmsghdr aligned;
    uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
} Segmented;

static void cut_into(struct msghdr *header, Segmented *ancillary, size_t segment) {
    memset(ancillary, 0, sizeof *ancillary);
    header->msg_control = ancillary;
    header->msg_controllen = sizeof *ancillary;
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    control->cmsg_level = IPPROTO_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    uint16_t bytes = (uint16_t)segment;
    memcpy(CMSG_DATA(control), &bytes, sizeof bytes);
}

/* How many of these are one batch: of one length, and their frames no more than so many bytes. */
static size_t batch_of(const struct iovec *vectors, size_t count, size_t batch_bytes) {
    if (batch_bytes > BATCH_BYTES) batch_bytes = BATCH_BYTES;
    size_t length = vectors[0].iov_len, longest = batch_bytes / (FRAME_HEADER_BYTES + length), alike = 1;
    if (longest > BATCH_DATAGRAMS) longest = BATCH_DATAGRAMS;
    while (alike < count && alike < longest && vectors[alike].iov_len == length) alike++;
    return alike;
}

/* As many of these datagrams as one call takes, batch by batch; -1 with errno. `more` follow, so that the last batch
   may be longer than it looks from here. */
static int send_some(int socket, const struct sockaddr_in *to, struct iovec *vectors, size_t count, int more,
                     size_t batch_bytes) {
    struct mmsghdr messages[MOST_SENT];
    Segmented ancillary[MOST_SENT];
    unsigned batches = 0;
    for (size_t at = 0; at < count; batches++) {
        size_t alike = batch_of(vectors + at, count - at, batch_bytes);
        if (more && batches > 0 && at + alike == count) break;
        struct msghdr *header = &messages[batches].msg_hdr;
        *header = (struct msghdr){.msg_name = (void *)to, .msg_namelen = sizeof *to,
                                  .msg_iov = vectors + at, .msg_iovlen = alike};
        if (alike > 1) cut_into(header, &ancillary[batches], vectors[at].iov_len);
        at += alike;
    }
    int sent = sendmmsg(socket, messages, batches, MSG_DONTWAIT), datagrams = 0;
    if (sent < 0) return -1;
    for (int i = 0; i < sent; i++) datagrams += (int)messages[i].msg_hdr.msg_iovlen;
    return datagrams;
}

/* send(socket, address, port, datagrams, at, batch_bytes, together) -> (how many of those from `at` on have left, at least
   one; their bytes); OSError if not even one could. `together`: those of one length whose frames are no more than
   `batch_bytes` as one, with UDP_SEGMENT. */
PyObject *weir_send(PyObject *module, PyObject *arguments) {
    (void)module;
    int port, together;
    const char *address;
    PyObject *object, *datagrams;
    Py_ssize_t at, batch_bytes;
    if (!PyArg_ParseTuple(arguments, "OsiO!nnp", &object, &address, &port, &PyList_Type, &datagrams, &at, &batch_bytes,
                          &together))
        return NULL;
    int socket = PyObject_AsFileDescriptor(object);
    if (socket < 0) return NULL;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
        return PyErr_Format(PyExc_ValueError, "%s is no IPv4 address", address);
    Py_ssize_t total = PyList_GET_SIZE(datagrams), bytes = 0, done = at;
    if (at < 0 || at > total || batch_bytes < 0)
        return PyErr_Format(PyExc_ValueError, "batches of %zd bytes from %zd on of %zd", batch_bytes, at, total);
    while (done < total) {
        struct iovec vectors[MOST_SENT];
        size_t count = 0;
        for (; count < MOST_SENT && done + (Py_ssize_t)count < total; count++) {
            PyObject *datagram = PyList_GET_ITEM(datagrams, done + (Py_ssize_t)count);
            if (!PyBytes_CheckExact(datagram)) return PyErr_Format(PyExc_TypeError, "datagrams are bytes");
            vectors[count] = (struct iovec){PyBytes_AS_STRING(datagram), (size_t)PyBytes_GET_SIZE(datagram)};
        }
        int more = done + (Py_ssize_t)count < total;
        int sent = send_some(socket, &to, vectors, count, more, together ? (size_t)batch_bytes : 0);
        if (sent < 0 && done == at) return PyErr_SetFromErrno(PyExc_OSError);
        if (sent <= 0) break;
        for (int i = 0; i < sent; i++) bytes += (Py_ssize_t)vectors[i].iov_len;
        done += sent;
    }
    return Py_BuildValue("(nn)", done - at, bytes);
}

/* total(datagrams) -> their bytes */
PyObject *weir_total(PyObject *module, PyObject *datagrams) {
    (void)module;
    if (!PyList_CheckExact(datagrams)) return PyErr_Format(PyExc_TypeError, "datagrams are a list");
    Py_ssize_t bytes = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(datagrams); i++) {
        PyObject *datagram = PyList_GET_ITEM(datagrams, i);
        if (!PyBytes_CheckExact(datagram)) return PyErr_Format(PyExc_TypeError, "datagrams are bytes");
        bytes += PyBytes_GET_SIZE(datagram);
    }
    return PyLong_FromSsize_t(bytes);
}
