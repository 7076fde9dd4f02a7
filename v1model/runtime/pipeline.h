/* simple_switch's packet path. Generated code includes this after it has declared struct phv and the p4_*
 * functions of the six blocks, so that the compiler sees all code at once. P4 fields are C members with f_
 * before the name.
 *
 * Order after ingress: clone, digest, resubmit, multicast, drop, unicast; after egress: clone, drop,
 * deparse, recirculate, transmit (targets/simple_switch/simple_switch.cpp of behavioral-model). */
#ifndef WEIR_PIPELINE_H
#define WEIR_PIPELINE_H

#include "trace.h"

enum instance_type { NORMAL = 0, INGRESS_CLONE = 1, EGRESS_CLONE = 2, RECIRCULATED = 4, REPLICATION = 5, RESUBMITTED = 6 };

static void p4_parse(struct vswitch *sw, struct job *job, struct phv *p);
static void p4_verify_checksum(struct vswitch *sw, struct job *job, struct phv *p);
static void p4_ingress(struct vswitch *sw, struct job *job, struct phv *p);
static void p4_egress(struct vswitch *sw, struct job *job, struct phv *p);
static void p4_compute_checksum(struct vswitch *sw, struct job *job, struct phv *p);
/* Writes the headers to `out`, which has the program's headroom_bytes; returns the number of bytes. */
static uint32_t p4_deparse(struct vswitch *sw, struct job *job, struct phv *p, uint8_t *out);
/* Copies the metadata that the call at `site` (clone, resubmit, recirculate) preserves. */
static void p4_keep(unsigned site, struct phv *to, const struct phv *from);
static void p4_digest(struct vswitch *sw, const struct job *job, struct phv *p);

static void reset_metadata(struct phv *p) {
    memset(&p->metadata, 0, sizeof p->metadata);
    memset(&p->standard_metadata, 0, sizeof p->standard_metadata);
}

/* Sets the metadata of a new copy: 0, except for the fields that the program preserves. */
static void copy_metadata(unsigned site, struct phv *to, const struct phv *from, enum instance_type type) {
    reset_metadata(to);
    p4_keep(site, to, from);
    to->standard_metadata.f_instance_type = type;
}

static struct job *take_job(struct vswitch *sw) {
    struct job *job = job_take(&sw->pool);
    if (job) return job;
    ports_flush(sw); /* gives back what only waits to be sent */
    job = job_take(&sw->pool);
    if (!job) sw->drops[DROPPED_NO_BUFFER]++;
    return job;
}

/* Returns a new job with the frame from `offset` on, at the same distance from the buffer's start. */
static struct job *copy_job(struct vswitch *sw, const struct job *from, uint32_t offset) {
    struct job *job = take_job(sw);
    if (!job) return NULL;
    job_begin(job, from->length, from->ingress_port);
    job->ingress_length = from->ingress_length;
    job->payload_offset = from->payload_offset;
    job->packet_length = from->packet_length;
    job->passes = from->passes;
    memcpy(job->data + offset, from->data + offset, from->length - offset);
    return job;
}

static void run_parser(struct vswitch *sw, struct job *job, struct phv *p) {
    p4_parse(sw, job, p);
    p4_verify_checksum(sw, job, p);
}

/* Writes the headers into the headroom; then headers or payload, whichever is shorter, move to join the
 * other. */
static void deparse(struct vswitch *sw, struct job *job, struct phv *p) {
    uint32_t header_bytes = p4_deparse(sw, job, p, job->buffer);
    uint32_t payload_bytes = job->length - job->payload_offset;
    uint8_t *payload = job->data + job->payload_offset;
    if (payload_bytes < header_bytes) {
        memmove(job->buffer + header_bytes, payload, payload_bytes);
        job->data = job->buffer;
    } else {
        job->data = payload - header_bytes;
        memmove(job->data, job->buffer, header_bytes);
    }
    job->length = header_bytes + payload_bytes;
}

/* Sends the frame to ingress again, as a packet of its own. Takes the job. */
static void run_again(struct vswitch *sw, struct job *job, unsigned site, enum instance_type type) {
    struct job *again = NULL;
    if (job->passes >= PASS_LIMIT) {
        sw->drops[DROPPED_PASS_LIMIT]++;
    } else if (sw->again.count >= AGAIN_LIMIT) {
        sw->drops[DROPPED_AGAIN_FULL]++;
    } else if (job->length > sw->max_frame_bytes) {
        sw->drops[DROPPED_OVERSIZE]++;
    } else {
        again = take_job(sw);
    }
    if (again) {
        job_begin(again, job->length, job->ingress_port);
        memcpy(again->data, job->data, job->length);
        memset(again->phv, 0, sizeof *again->phv);
        copy_metadata(site, again->phv, job->phv, type);
        again->phv->standard_metadata.f_packet_length = job->length;
        again->prepared = true;
        again->passes = job->passes + 1;
        trace_copied(sw, again, job, type == RESUBMITTED ? TRACE_RESUBMIT : TRACE_RECIRCULATE);
        job_push(&sw->again, again);
    }
    job_release(&sw->pool, job);
}

static bool has_queues(const struct vswitch *sw, unsigned port) {
    return sw->queues && port < PORTS && sw->queues->limited[port];
}

/* Returns how many packets wait for a port, in its queues or its interface. */
static uint32_t port_backlog(const struct vswitch *sw, unsigned port) {
    return has_queues(sw, port) ? sw->queues->port[port].packets : port_depth(sw, port);
}

static void queue_egress(struct vswitch *sw, struct job *job, unsigned port) {
    struct phv *p = job->phv;
    job->egress_port = (uint16_t)port;
    bool queued = has_queues(sw, port) && !queues_pass(sw, job, p->standard_metadata.f_priority);
    if (queued && !queues_admit(sw, job, p->standard_metadata.f_priority)) {
        trace_numbers(sw, job, TRACE_DROPPED, DROPPED_QUEUE_FULL, port + 1);
        drop(sw, job, DROPPED_QUEUE_FULL);
        return;
    }
    trace_numbers(sw, job, TRACE_QUEUED, port, p->standard_metadata.f_egress_rid);
    p->standard_metadata.f_enq_timestamp = (uint32_t)sw->now_us;
    p->standard_metadata.f_enq_qdepth = port_backlog(sw, port) & 0x7ffff;
    if (queued)
        queues_put(sw, job, p->standard_metadata.f_priority);
    else
        job_push(&sw->egress, job);
}

/* Makes one copy for each replica; takes the job for the last one. As in simple_switch, effects that
 * ingress asked for the packet itself (truncate, recirculate) don't apply to its copies. */
static void replicate(struct vswitch *sw, struct job *job, const struct replicas *replicas, uint32_t truncate_bytes) {
    if (!replicas || !replicas->count) {
        trace_numbers(sw, job, TRACE_DROPPED, DROPPED_NO_GROUP, 0);
        drop(sw, job, DROPPED_NO_GROUP);
        return;
    }
    for (uint32_t i = 0; i < replicas->count; i++) {
        struct job *copy = job;
        if (i + 1 < replicas->count) {
            copy = copy_job(sw, job, job->payload_offset);
            if (!copy) continue;
            memcpy(copy->phv, job->phv, sizeof *copy->phv);
            trace_copied(sw, copy, job, TRACE_REPLICA);
        }
        copy->truncate_bytes = truncate_bytes;
        copy->recirculate_site = 0;
        copy->phv->standard_metadata.f_egress_rid = replicas->replica[i].instance;
        queue_egress(sw, copy, replicas->replica[i].port);
    }
}

static const struct replicas *clone_session(const struct vswitch *sw, const struct job *job) {
    return sw->replication.sessions[job->clone_session % CLONE_SESSIONS];
}

static void send_clone(struct vswitch *sw, struct job *clone, const struct replicas *session) {
    replicate(sw, clone, session, session->packet_length_bytes ? session->packet_length_bytes : UINT32_MAX);
}

/* Copies the packet as it came in, and parses it again. */
static void clone_ingress(struct vswitch *sw, const struct job *job) {
    const struct replicas *session = clone_session(sw, job);
    struct job *clone = session ? copy_job(sw, job, 0) : NULL;
    if (!clone) return;
    struct phv *p = clone->phv;
    clone->packet_length = clone->length;
    memset(p, 0, sizeof *p);
    p->standard_metadata.f_ingress_port = job->ingress_port;
    trace_copied(sw, clone, job, TRACE_CLONE_INGRESS);
    run_parser(sw, clone, p);
    copy_metadata(job->clone_site, p, job->phv, INGRESS_CLONE);
    send_clone(sw, clone, session);
}

/* Copies the packet as egress leaves it, for another pass of egress. */
static void clone_egress(struct vswitch *sw, struct job *job) {
    const struct replicas *session = clone_session(sw, job);
    struct job *clone = session ? copy_job(sw, job, job->payload_offset) : NULL;
    if (!clone) return;
    memcpy(clone->phv, job->phv, sizeof *clone->phv);
    copy_metadata(job->clone_site, clone->phv, job->phv, EGRESS_CLONE);
    trace_copied(sw, clone, job, TRACE_CLONE_EGRESS);
    send_clone(sw, clone, session);
}

static void run_egress(struct vswitch *sw, struct job *job) {
    struct phv *p = job->phv;
    p->standard_metadata.f_egress_global_timestamp = sw->now_us & mask64(48);
    p->standard_metadata.f_deq_timedelta = (uint32_t)sw->now_us - p->standard_metadata.f_enq_timestamp;
    p->standard_metadata.f_deq_qdepth = port_backlog(sw, job->egress_port) & 0x7ffff;
    p->standard_metadata.f_egress_port = job->egress_port & DROP_PORT;
    p->standard_metadata.f_egress_spec = 0; /* DROP_PORT + 1 in 9 bits */
    p->standard_metadata.f_packet_length = job->packet_length;
    job->clone_site = 0;
    p4_egress(sw, job, p);
    if (job->clone_site) clone_egress(sw, job);
    if (job->aborted) {
        trace_aborted(sw, job);
        job_release(&sw->pool, job);
        return;
    }
    if (p->standard_metadata.f_egress_spec == DROP_PORT) {
        trace_numbers(sw, job, TRACE_DROPPED, DROPPED_IN_EGRESS, 0);
        drop(sw, job, DROPPED_IN_EGRESS);
        return;
    }
    p4_compute_checksum(sw, job, p);
    deparse(sw, job, p);
    if (job->congested) queues_mark(sw, job);
    if (job->aborted) {
        trace_aborted(sw, job);
        job_release(&sw->pool, job);
        return;
    }
    if (job->recirculate_site) {
        run_again(sw, job, job->recirculate_site, RECIRCULATED);
        return;
    }
    if (job->length > job->truncate_bytes) job->length = job->truncate_bytes;
    port_output(sw, job);
}

static void after_ingress(struct vswitch *sw, struct job *job) {
    struct phv *p = job->phv;
    unsigned group = p->standard_metadata.f_mcast_grp;
    if (job->clone_site) clone_ingress(sw, job);
    if (job->digest_site) p4_digest(sw, job, p);
    if (job->resubmit_site) {
        run_again(sw, job, job->resubmit_site, RESUBMITTED);
    } else if (group) {
        p->standard_metadata.f_instance_type = REPLICATION;
        replicate(sw, job, sw->replication.groups[group], UINT32_MAX);
    } else if (p->standard_metadata.f_egress_spec == DROP_PORT) {
        trace_numbers(sw, job, TRACE_DROPPED, DROPPED_IN_INGRESS, 0);
        drop(sw, job, DROPPED_IN_INGRESS);
    } else {
        p->standard_metadata.f_instance_type = NORMAL;
        queue_egress(sw, job, p->standard_metadata.f_egress_spec);
    }
}

static void start_packet(struct vswitch *sw, struct job *job, struct phv *p) {
    memset(p, 0, sizeof *p);
    p->standard_metadata.f_ingress_port = job->ingress_port & DROP_PORT;
    p->standard_metadata.f_packet_length = job->length;
    p->standard_metadata.f_ingress_global_timestamp = sw->now_us & mask64(48);
}

/* Runs egress for every packet that waits for it, and for the copies that result. */
static void run_egresses(struct vswitch *sw) {
    struct job *job;
    unsigned passes = 0;
    while ((job = job_pop(&sw->egress))) {
        if (++passes <= PASS_LIMIT)
            run_egress(sw, job);
        else
            drop(sw, job, DROPPED_PASS_LIMIT);
    }
}

/* Runs egress for a packet that leaves its queue; takes the job. */
static void p4_leave(struct vswitch *sw, struct job *job) {
    job_push(&sw->egress, job);
    run_egresses(sw);
}

static void p4_run(struct vswitch *sw, struct job *job) {
    struct phv *p = job->phv;
    if (!job->prepared) {
        start_packet(sw, job, p);
        trace_begin(sw, job);
    }
    run_parser(sw, job, p);
    p4_ingress(sw, job, p);
    if (job->aborted) {
        trace_aborted(sw, job);
        job_release(&sw->pool, job);
    } else {
        after_ingress(sw, job);
    }
    run_egresses(sw);
}

#endif
