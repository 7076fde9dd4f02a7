/* One switch: the state of a program, the packets in flight, and the lock around both. Everything belongs
 * to struct vswitch, so that a process can have several switches. */
#ifndef WEIR_SWITCH_H
#define WEIR_SWITCH_H

#include <pthread.h>

#include "events.h"
#include "job.h"
#include "port.h"
#include "profile.h"
#include "program.h"
#include "queues.h"
#include "replication.h"
#include "table.h"

enum {
    DROP_PORT = 511,
    PASS_LIMIT = 4096,     /* passes of a packet, egress passes of a pass; in the library form all that a packet causes */
    AGAIN_LIMIT = 1024,    /* packets that wait to enter ingress again, as in simple_switch */
    PARSER_LIMIT = 65536,  /* parser states in cycles, per packet */
    LOOP_LIMIT = 1 << 20,  /* loop iterations, per packet and control block */
};

/* Why packets (or events) were dropped; the names are in Switch.statistics(). */
enum drop_cause {
    DROPPED_IN_INGRESS,
    DROPPED_IN_EGRESS,
    DROPPED_NO_GROUP,       /* multicast group without replicas */
    DROPPED_NO_PORT,        /* egress port not attached, or its interface is gone */
    DROPPED_NO_BUFFER,
    DROPPED_AGAIN_FULL,     /* too many packets to resubmit or recirculate */
    DROPPED_PASS_LIMIT,
    DROPPED_LOOP_LIMIT,
    DROPPED_ASSERTION,
    DROPPED_OVERSIZE,       /* larger than the buffers */
    DROPPED_TRANSMIT,       /* the interface did not take it */
    DROPPED_BEYOND_MTU,     /* longer than the MTU of the interface that it was to leave by */
    DROPPED_QUEUE_FULL,     /* the port's queue had no room */
    DROPPED_EVENT_FULL,     /* nobody fetched packets for the CPU, digests or messages */
    DROP_CAUSES,
};

enum { TRACE_PATTERN_BYTES = 256 };

/* Filter of traced packets: those that come into `port` (ANY_PORT: any) and begin with `value` under
 * `mask`. */
struct trace_filter {
    bool enabled;
    uint32_t port, length;
    uint8_t value[TRACE_PATTERN_BYTES], mask[TRACE_PATTERN_BYTES];
    uint32_t packets, copies; /* numbered so far */
};
enum { ANY_PORT = UINT32_MAX };

struct counter {
    uint64_t packets, bytes;
};

enum { CUSTOM_CRCS = 64 };

struct vswitch {
    const struct program *program;
    struct table *tables;
    uint8_t **registers, *register_memory;
    size_t register_bytes;
    struct counter **counters;
    struct meter **meters;
    struct profile *profiles;
    void **custom; /* extern objects that the user has written */
    struct replication replication;
    struct job_pool pool;
    struct job_queue again, egress;
    struct queues *queues; /* NULL: there is no traffic manager */
    uint64_t drops[DROP_CAUSES];
    uint64_t now_us;   /* since the start, for the packet that is being run */
    uint64_t start_ns;
    uint64_t given_us; /* by who sets the clock; UINT64_MAX: the time is that of the machine */
    uint64_t random_state;
    uint64_t seed[2];
    struct crc32 crc32;
    struct custom_crc custom_crcs[CUSTOM_CRCS]; /* of the program's calls in their order */
    bool *digest_enabled;
    bool log_enabled;
    struct trace_filter trace;
    uint32_t max_frame_bytes;
    uint32_t cpu_port;
    struct events events;
    struct ports ports;
    uint8_t *scratch; /* max_frame_bytes + headroom: checksums over a payload */

    /* While waiting for `state`, a thread holds `turn`: so a thread that just released the state can't
     * take it again before one that waits. */
    pthread_mutex_t turn, state;
};

static inline void switch_lock(struct vswitch *sw) {
    pthread_mutex_lock(&sw->turn);
    pthread_mutex_lock(&sw->state);
    pthread_mutex_unlock(&sw->turn);
}
static inline void switch_unlock(struct vswitch *sw) { pthread_mutex_unlock(&sw->state); }

static inline void drop(struct vswitch *sw, struct job *job, enum drop_cause cause) {
    sw->drops[cause]++;
    job_release(&sw->pool, job);
}

/* xorshift64*, for random() and the hash algorithm of that name. */
static inline uint64_t next_random(struct vswitch *sw) {
    sw->random_state ^= sw->random_state >> 12;
    sw->random_state ^= sw->random_state << 25;
    sw->random_state ^= sw->random_state >> 27;
    return sw->random_state * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t clock_now_us(const struct vswitch *sw);

/* Runs a packet to completion, or (again_limit reached) drops packets that would never end. */
void switch_run(struct vswitch *sw, struct job *job);

/* Runs the packets that resubmit and recirculate have put aside. */
void switch_run_again(struct vswitch *sw);

/* Wakes the forwarding thread to check its tasks. */
void forward_wake(struct vswitch *sw);

/* Puts a digest sample or a log message into the events. */
void emit_digest(struct vswitch *sw, uint32_t digest, const uint8_t *sample);
void emit_log(struct vswitch *sw, uint32_t message, const uint8_t *arguments, uint32_t bytes);

/* Traces (trace.h): whether a packet is wanted; one step of a packet, with its values in two parts. */
bool trace_wants(const struct trace_filter *filter, const struct job *job);
void emit_trace(struct vswitch *sw, const struct job *job, uint32_t site, const uint8_t *values, uint32_t bytes,
                const uint8_t *more, uint32_t more_bytes);

#endif
