/* Traces of packets as events, in programs that are compiled with WEIR_TRACE. In others `traced` is false
 * for the compiler too, so that no code of it remains.
 *
 * A packet that came in has a number, and so has each copy of it: the packet itself, clones, replicas, and
 * resubmitted or recirculated ones. */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include "switch.h"

/* Steps outside the program's own code; sites of the program are numbered from 0. The names and values of
 * each are in v1model/trace/decoder.py. */
enum trace_step {
    TRACE_RECEIVED = 0x40000000, /* port, then the frame */
    TRACE_COPIED,                /* enum trace_cause, the copy that it is one of */
    TRACE_QUEUED,                /* egress port, replication id */
    TRACE_DROPPED,               /* enum drop_cause, the port that could not take or send it plus 1 (0: none) */
    TRACE_SENT,                  /* port, then the frame */
};
enum trace_cause { TRACE_CLONE_INGRESS, TRACE_CLONE_EGRESS, TRACE_REPLICA, TRACE_RESUBMIT, TRACE_RECIRCULATE };

#ifdef WEIR_TRACE
static inline bool traced(const struct job *job) { return job->trace_packet; }
#else
static inline bool traced(const struct job *job) { return (void)job, false; }
#endif

static inline void trace_numbers(struct vswitch *sw, const struct job *job, enum trace_step step, uint32_t a, uint32_t b) {
    uint32_t numbers[2] = {a, b};
    if (traced(job)) emit_trace(sw, job, step, (const uint8_t *)numbers, sizeof numbers, NULL, 0);
}

/* For the runtime, which is not compiled anew for a trace: a packet left by a port, or the port lost it. */
void trace_sent(struct vswitch *sw, const struct job *job);
void trace_lost(struct vswitch *sw, const struct job *job, uint32_t cause, uint32_t port);
/* Frames that `port` could not take: each is a packet of its own, without its bytes. */
void trace_not_taken(struct vswitch *sw, uint64_t frames, uint32_t port);

/* Traces a port number and the frame as it is now. */
static inline void trace_frame(struct vswitch *sw, const struct job *job, enum trace_step step, uint32_t port) {
    if (traced(job)) emit_trace(sw, job, step, (const uint8_t *)&port, sizeof port, job->data, job->length);
}

/* Decides whether a packet that came in is traced. */
static inline void trace_begin(struct vswitch *sw, struct job *job) {
#ifdef WEIR_TRACE
    if (!trace_wants(&sw->trace, job)) return;
    job->trace_packet = ++sw->trace.packets ? sw->trace.packets : ++sw->trace.packets;
    job->trace_copy = ++sw->trace.copies;
#endif
    trace_frame(sw, job, TRACE_RECEIVED, job->ingress_port);
}

static inline void trace_copied(struct vswitch *sw, struct job *copy, const struct job *from, enum trace_cause cause) {
    if (!traced(from)) return;
    copy->trace_packet = from->trace_packet;
    copy->trace_copy = ++sw->trace.copies;
    trace_numbers(sw, copy, TRACE_COPIED, cause, from->trace_copy);
}

/* Traces an aborted packet; the program counts it where it stops the packet. */
static inline void trace_aborted(struct vswitch *sw, const struct job *job) {
    trace_numbers(sw, job, TRACE_DROPPED, DROP_CAUSES, 0);
}

static inline uint32_t trace_handle(const struct table *table, const struct entry *entry) {
    if (!entry || entry == table->default_entry) return NO_ENTRY;
    return (uint32_t)((size_t)((const uint8_t *)entry - table->entries) / table->entry_bytes);
}

#endif
