/* The load generator: sends a plan's frames at a steady rate and matches what comes back.
 *
 *   load PLAN RATE_PER_S SECONDS_MS FIRST_NUMBER INTERFACE...
 *
 * RATE_PER_S 0: as fast as it can. Each frame carries a number, from FIRST_NUMBER on; a reply is one of
 * the plan's reply length that carries a number of this run and was not seen before at its port. One
 * thread sends, receives and plays the storage node, so that all of it costs one core. A group's frames
 * go together. What it has fallen behind it makes up for in bursts of at most BATCH. Results: one line of JSON. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "packet_port.h"
#include "plan.h"
#include "ring.h"

enum {
    READ_AT_ONCE = 4 * BATCH,       /* frames received at a port before it is time to send again */
    MOST_FRAMES = 1 << 24,          /* of one run */
    SPIN_NS = 60000,                /* a wait shorter than this is not slept through */
    GRACE_NS = 10000000,            /* replies may be this late after the last request */
    QUIET_NS = 60000000,            /* silence after which nothing more comes */
    LONGEST_DRAIN_NS = 2000000000,
};

struct record {
    uint64_t sent_ns;
    uint32_t latency_ns; /* 0: not answered */
};

static struct {
    struct plan plan;
    int port[PLAN_PORTS];
    struct ring in[PLAN_PORTS];
    struct batch out[PLAN_PORTS];
    struct record *record;
    uint64_t capacity, next, wanted;
    uint32_t first_number;
    uint64_t sent, failed, answered, in_time, late, repeated, forwarded, idle_ns, end_ns;
} run;

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void flush(unsigned port) {
    unsigned count = run.out[port].count;
    if (!count) return;
    unsigned went = port_send(run.port[port], &run.out[port]);
    if (port == run.plan.head.answer_port) {
        run.forwarded += count;
        return;
    }
    run.sent += went;
    run.failed += count - went;
}

static uint8_t *next_slot(unsigned port, unsigned bytes) {
    if (run.out[port].count == BATCH) flush(port);
    unsigned slot = run.out[port].count++;
    run.out[port].piece[slot].iov_len = bytes;
    return run.out[port].frame[slot];
}

static void queue_next(uint64_t now_ns) {
    const struct plan_header *head = &run.plan.head;
    const struct plan_frame *frame = &run.plan.frame[run.next % head->frames];
    uint32_t number = htobe32(run.first_number + (uint32_t)(run.next / head->group));
    uint8_t *data = next_slot(frame->port, frame->bytes);
    memcpy(data, frame->data, frame->bytes);
    memcpy(data + head->number_offset, &number, sizeof number);
    if (head->key_offset) memcpy(data + head->key_offset, &number, sizeof number);
    run.record[run.next++].sent_ns = now_ns;
}

/* Sends what is due, at most BATCH; whether there was any. */
static bool send_due(uint64_t now_ns, uint64_t due) {
    unsigned count = 0;
    if (due > run.capacity) due = run.capacity;
    for (; run.next < due && count < BATCH; count++) queue_next(now_ns);
    for (unsigned port = 0; count && port < run.plan.head.ports; port++) flush(port);
    return count > 0;
}

static void match(unsigned port, const uint8_t *frame, uint32_t bytes, uint64_t now_ns) {
    const struct plan_header *head = &run.plan.head;
    uint32_t number;
    memcpy(&number, frame + head->number_offset, sizeof number);
    uint64_t index = (uint64_t)(be32toh(number) - run.first_number) * head->group;
    if (head->group > 1) index += port;
    if (bytes != head->reply_bytes || index >= run.next) return; /* of an earlier run */
    struct record *record = &run.record[index];
    if (record->latency_ns) {
        run.repeated++;
        return;
    }
    uint64_t latency_ns = now_ns - record->sent_ns;
    record->latency_ns = latency_ns < UINT32_MAX ? (uint32_t)latency_ns | 1 : UINT32_MAX;
    if (now_ns > run.end_ns + GRACE_NS) {
        run.late++;
        return;
    }
    run.answered++;
    if (now_ns <= run.end_ns) run.in_time++;
}

static bool receive(unsigned port) {
    uint64_t now_ns = clock_ns();
    uint32_t bytes;
    const uint8_t *frame;
    unsigned count = 0;
    for (; count < READ_AT_ONCE && (frame = ring_next(&run.in[port], &bytes)); count++) {
        if (port == run.plan.head.answer_port)
            plan_answer(&run.plan, frame, next_slot(port, run.plan.head.answer_bytes));
        else
            match(port, frame, bytes, now_ns);
        ring_release(&run.in[port]);
    }
    return count > 0;
}

static bool receive_all(void) {
    bool any = false;
    for (unsigned port = 0; port < run.plan.head.ports; port++) any |= receive(port);
    if (run.plan.head.answer_port != NO_PORT) flush(run.plan.head.answer_port);
    return any;
}

static void wait_until(uint64_t then_ns) {
    uint64_t now_ns = clock_ns();
    struct pollfd ports[PLAN_PORTS];
    if (then_ns < now_ns + SPIN_NS) return;
    for (unsigned i = 0; i < run.plan.head.ports; i++) ports[i] = (struct pollfd){.fd = run.port[i], .events = POLLIN};
    struct timespec timeout = {.tv_sec = (time_t)((then_ns - now_ns) / 1000000000u),
                               .tv_nsec = (long)((then_ns - now_ns) % 1000000000u)};
    if (ppoll(ports, run.plan.head.ports, &timeout, NULL) < 0 && errno != EINTR) fail("ppoll: %s", strerror(errno));
}

static void send_at(uint32_t rate_per_s, uint64_t duration_ns) {
    uint64_t start_ns = clock_ns(), now_ns = start_ns, group = run.plan.head.group;
    run.end_ns = start_ns + duration_ns;
    while (now_ns < run.end_ns) {
        double elapsed_s = (double)(now_ns - start_ns) / 1e9;
        uint64_t due = rate_per_s ? (uint64_t)(elapsed_s * rate_per_s / group + 1) * group : run.next + BATCH;
        bool worked = send_due(now_ns, due);
        worked |= receive_all();
        if (!worked) {
            double next_s = rate_per_s ? (double)run.next / rate_per_s : 0;
            uint64_t next_ns = start_ns + (uint64_t)(next_s * 1e9);
            wait_until(next_ns < run.end_ns ? next_ns : run.end_ns);
        }
        uint64_t then_ns = now_ns;
        now_ns = clock_ns();
        if (!worked) run.idle_ns += now_ns - then_ns;
    }
}

/* Until everything is answered, or nothing has come for a while. */
static void drain(void) {
    uint64_t start_ns = clock_ns(), heard_ns = start_ns, now_ns = start_ns;
    while (run.answered + run.late < run.next && now_ns - heard_ns < QUIET_NS && now_ns - start_ns < LONGEST_DRAIN_NS) {
        if (receive_all()) heard_ns = clock_ns();
        wait_until(heard_ns + QUIET_NS);
        now_ns = clock_ns();
    }
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(double asked_s) {
    uint32_t *latency = malloc((run.next + 1) * sizeof *latency);
    uint64_t count = 0;
    unsigned drops = 0;
    if (!latency) fail("no memory");
    for (uint64_t i = 0; i < run.next; i++)
        if (run.record[i].latency_ns) latency[count++] = run.record[i].latency_ns;
    qsort(latency, count, sizeof *latency, ascending);
    for (unsigned i = 0; i < run.plan.head.ports; i++) drops += port_drops(run.port[i]);
    printf("{\"seconds\": %.6f, \"sent\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"answered\": %" PRIu64
           ", \"answered_while_sending\": %" PRIu64 ", \"late\": %" PRIu64 ", \"repeated\": %" PRIu64
           ", \"forwarded\": %" PRIu64 ", \"own_drops\": %u, \"idle_share\": %.4f",
           asked_s, run.sent, run.failed, run.answered, run.in_time, run.late, run.repeated, run.forwarded, drops,
           (double)run.idle_ns / 1e9 / asked_s);
    if (count) printf(", \"p50_us\": %.3f, \"p99_us\": %.3f", latency[count / 2] / 1e3, latency[count * 99 / 100] / 1e3);
    puts("}");
    free(latency);
}

static void open_ports(char **interfaces, unsigned count) {
    if (count != run.plan.head.ports) fail("the plan has %u ports, but %u interfaces are given", run.plan.head.ports, count);
    for (unsigned i = 0; i < count; i++) {
        run.port[i] = port_open(interfaces[i], 0);
        run.in[i] = ring_open(run.port[i]);
        batch_init(&run.out[i]);
    }
}

int main(int argc, char **argv) {
    if (argc < 6) fail("usage: load PLAN RATE_PER_S DURATION_MS FIRST_NUMBER INTERFACE...");
    run.plan = plan_read(argv[1]);
    uint32_t rate_per_s = parse_number(argv[2], "RATE_PER_S"), duration_ms = parse_number(argv[3], "DURATION_MS");
    run.first_number = parse_number(argv[4], "FIRST_NUMBER");
    run.capacity = rate_per_s ? (uint64_t)rate_per_s * duration_ms / 1000 : MOST_FRAMES;
    run.capacity -= run.capacity % run.plan.head.group;
    if (!run.capacity || run.capacity > MOST_FRAMES) fail("1 to %d frames, not %" PRIu64, MOST_FRAMES, run.capacity);
    run.record = calloc(run.capacity, sizeof *run.record);
    if (!run.record) fail("no memory");
    open_ports(argv + 5, (unsigned)argc - 5);
    prctl(PR_SET_TIMERSLACK, 1UL); /* sleep no longer than asked for */
    send_at(rate_per_s, (uint64_t)duration_ms * 1000000);
    drain();
    report(duration_ms / 1e3);
}
