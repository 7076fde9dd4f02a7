/* The limit: what a core's worth of bare UDP moves between two namespaces, in datagrams of one size.
 *
 *   udp send ADDRESS BYTES TOGETHER MILLISECONDS     as fast as it can, TOGETHER datagrams to a call of the kernel's
 *   udp receive ADDRESS BYTES MILLISECONDS           from the first datagram on
 *
 * Both print the datagrams that they moved and the CPU nanoseconds that they took. Datagrams are received one by
 * one, as behind a switch. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "packet_port.h"

enum { UDP_PORT = 22342, MOST_BYTES = 65507, RECEIVES = 32, WAIT_MS = 5000 };

static uint8_t buffer[RECEIVES][MOST_BYTES];

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void report(uint64_t datagrams, uint64_t cpu_ns) {
    printf("%" PRIu64 " %" PRIu64 "\n", datagrams, cpu_ns);
}

static int open_socket(const char *address, int receives) {
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 8 << 20;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(UDP_PORT)};
    if (udp < 0 || !inet_aton(address, &where.sin_addr)) fail("UDP socket for %s: %s", address, strerror(errno));
    if (setsockopt(udp, SOL_SOCKET, receives ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, &size, sizeof size) ||
        (receives ? bind(udp, (struct sockaddr *)&where, sizeof where)
                  : connect(udp, (struct sockaddr *)&where, sizeof where)))
        fail("%s: %s", address, strerror(errno));
    return udp;
}

static void send_all(int udp, unsigned bytes, unsigned together, uint64_t duration_ns) {
    int segment = (int)bytes;
    if (together > 1 && setsockopt(udp, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment))
        fail("UDP_SEGMENT: %s", strerror(errno));
    uint64_t sent = 0, cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), end_ns = now_ns(CLOCK_MONOTONIC) + duration_ns;
    while (now_ns(CLOCK_MONOTONIC) < end_ns) {
        if (send(udp, buffer[0], (size_t)bytes * together, 0) > 0)
            sent += together;
        else if (errno != ENOBUFS && errno != ECONNREFUSED && errno != EINTR)
            fail("send: %s", strerror(errno));
    }
    report(sent, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
}

static void receive_all(int udp, unsigned bytes, uint64_t duration_ns) {
    struct iovec pieces[RECEIVES];
    struct mmsghdr messages[RECEIVES] = {0};
    for (int i = 0; i < RECEIVES; i++) {
        pieces[i] = (struct iovec){buffer[i], MOST_BYTES};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
    }
    struct pollfd waiting = {.fd = udp, .events = POLLIN};
    if (poll(&waiting, 1, WAIT_MS) <= 0) fail("nothing came");
    uint64_t received = 0, cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), end_ns = now_ns(CLOCK_MONOTONIC) + duration_ns;
    for (uint64_t now; (now = now_ns(CLOCK_MONOTONIC)) < end_ns;) {
        if (poll(&waiting, 1, (int)((end_ns - now) / 1000000) + 1) <= 0) break;
        int count = recvmmsg(udp, messages, RECEIVES, MSG_DONTWAIT, NULL);
        for (int i = 0; i < count; i++) received += messages[i].msg_len == bytes;
    }
    report(received, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
}

int main(int argc, char **argv) {
    int receives = argc == 5 && !strcmp(argv[1], "receive");
    if (!receives && (argc != 6 || strcmp(argv[1], "send"))) fail("usage: udp send|receive ADDRESS BYTES ...");
    unsigned bytes = parse_number(argv[3], "BYTES"), together = receives ? 1 : parse_number(argv[4], "TOGETHER");
    uint64_t duration_ns = (uint64_t)parse_number(argv[argc - 1], "MILLISECONDS") * 1000000;
    if (!bytes || !together || bytes > MOST_BYTES / together) fail("%u datagrams of %u bytes", together, bytes);
    int udp = open_socket(argv[2], receives);
    if (receives) {
        puts("ready");
        fflush(stdout);
        receive_all(udp, bytes, duration_ns);
    } else {
        send_all(udp, bytes, together, duration_ns);
    }
}
