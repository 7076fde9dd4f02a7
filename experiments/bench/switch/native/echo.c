/* The ceiling: what a switch on AF_PACKET could do if it had nothing to do but to move frames.
 *
 *   echo BUFFER_BYTES RULE... -- INTERFACE...
 *
 * A rule IN:OUT[,OUT...]:BYTES sends what comes in at port IN (ports count from 0) out of each OUT, as
 * frames of BYTES bytes (0: as long as they came). What comes in at a port without a rule ends there. */
#include "packet_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { PORTS = 16 };

struct rule {
    unsigned outs, out[PORTS], bytes;
};

static struct rule rules[PORTS];
static int ports[PORTS];
static struct batch batch;

static void parse_rule(char *text) {
    char *state = NULL, *in = strtok_r(text, ":", &state), *outs = strtok_r(NULL, ":", &state);
    char *bytes = strtok_r(NULL, ":", &state);
    if (!in || !outs || !bytes) fail("a rule is IN:OUT[,OUT...]:BYTES, not %s", text);
    unsigned port = parse_number(in, "rule");
    if (port >= PORTS) fail("rule: ports are 0 to %d, not %u", PORTS - 1, port);
    struct rule *rule = &rules[port];
    rule->bytes = parse_number(bytes, "rule");
    if (rule->bytes > FRAME_BYTES) fail("rule: frames have up to %d bytes", FRAME_BYTES);
    for (char *out = strtok_r(outs, ",", &state); out && rule->outs < PORTS; out = strtok_r(NULL, ",", &state))
        rule->out[rule->outs++] = parse_number(out, "rule");
}

static void forward(const struct rule *rule) {
    unsigned count = batch.count;
    for (unsigned i = 0; i < count; i++) {
        unsigned came = batch.message[i].msg_len < FRAME_BYTES ? batch.message[i].msg_len : FRAME_BYTES;
        batch.piece[i].iov_len = rule->bytes ? rule->bytes : came;
    }
    for (unsigned out = 0; out < rule->outs; out++) {
        batch.count = count; /* sending empties the batch */
        port_send(ports[rule->out[out]], &batch);
    }
}

static void serve(int epoll) {
    struct epoll_event ready[PORTS];
    for (;;) {
        int count = epoll_wait(epoll, ready, PORTS, -1);
        if (count < 0 && errno != EINTR) fail("epoll_wait: %s", strerror(errno));
        for (int i = 0; i < count; i++)
            if (port_receive(ports[ready[i].data.u32], &batch, FRAME_BYTES)) forward(&rules[ready[i].data.u32]);
    }
}

int main(int argc, char **argv) {
    int at = 2, epoll = epoll_create1(EPOLL_CLOEXEC);
    unsigned count = 0;
    batch_init(&batch);
    if (argc < 5) fail("usage: echo BUFFER_BYTES RULE... -- INTERFACE...");
    for (; at < argc && strcmp(argv[at], "--"); at++) parse_rule(argv[at]);
    for (at++; at < argc && count < PORTS; at++, count++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = count};
        ports[count] = port_open(argv[at], (int)parse_number(argv[1], "BUFFER_BYTES"));
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, ports[count], &event)) fail("epoll_ctl: %s", strerror(errno));
    }
    for (unsigned i = 0; i < PORTS; i++)
        for (unsigned out = 0; out < rules[i].outs; out++)
            if (rules[i].out[out] >= count) fail("rule: port %u of %u", rules[i].out[out], count);
    puts("ready");
    fflush(stdout);
    serve(epoll);
}
