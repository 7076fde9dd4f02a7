#include "packet_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

uint32_t parse_number(const char *text, const char *what) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value > UINT32_MAX) fail("%s: not a number: %s", what, text);
    return (uint32_t)value;
}

int port_open(const char *interface, int receive_buffer_bytes) {
    int one = 1, port = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (port < 0) fail("AF_PACKET socket: %s", strerror(errno));
    /* Before the bind, or what goes out of the interface would come in for a moment. */
    if (setsockopt(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
        setsockopt(port, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one) ||
        setsockopt(port, SOL_SOCKET, SO_RCVBUFFORCE, &receive_buffer_bytes, sizeof receive_buffer_bytes))
        fail("%s: socket options: %s", interface, strerror(errno));
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = htons(ETH_P_ALL),
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    if (!address.sll_ifindex || bind(port, (struct sockaddr *)&address, sizeof address))
        fail("%s: %s", interface, strerror(errno));
    return port;
}

void batch_init(struct batch *batch) {
    *batch = (struct batch){0};
    for (unsigned i = 0; i < BATCH; i++) {
        batch->piece[i].iov_base = batch->frame[i];
        batch->message[i].msg_hdr = (struct msghdr){.msg_iov = &batch->piece[i], .msg_iovlen = 1};
    }
}

unsigned port_receive(int port, struct batch *batch, unsigned most_bytes) {
    for (unsigned i = 0; i < BATCH; i++) batch->piece[i].iov_len = most_bytes;
    int count = recvmmsg(port, batch->message, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) fail("recvmmsg: %s", strerror(errno));
    batch->count = count < 0 ? 0 : (unsigned)count;
    return batch->count;
}

unsigned port_send(int port, struct batch *batch) {
    unsigned done = 0, went = 0;
    while (done < batch->count) {
        int sent = sendmmsg(port, batch->message + done, batch->count - done, 0);
        if (sent > 0) {
            done += (unsigned)sent;
            went += (unsigned)sent;
        } else if (errno == ENOBUFS) {
            done++; /* the other end of the cable did not take it */
        } else if (errno != EINTR) {
            fail("sendmmsg: %s", strerror(errno));
        }
    }
    batch->count = 0;
    return went;
}

unsigned port_drops(int port) {
    struct tpacket_stats statistics;
    socklen_t size = sizeof statistics;
    if (getsockopt(port, SOL_PACKET, PACKET_STATISTICS, &statistics, &size)) fail("PACKET_STATISTICS: %s", strerror(errno));
    return statistics.tp_drops;
}
