/* A packet in work: its frame in a buffer with headroom, and its headers and metadata. */
#ifndef WEIR_JOB_H
#define WEIR_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"

struct phv; /* defined by generated code */

struct job {
    struct job *next;
    struct phv *phv;
    uint8_t *buffer;         /* start of the headroom */
    uint8_t *data;           /* start of the frame */
    uint32_t length;         /* of the frame */
    uint32_t payload_offset; /* first byte that the parser did not take */
    uint32_t ingress_length; /* what counters and meters count */
    uint32_t packet_length;  /* simple_switch's length register: follows setValid and setInvalid */
    uint32_t truncate_bytes;
    uint32_t passes;         /* resubmits and recirculations that led to it */
    uint16_t ingress_port, egress_port;
    uint16_t clone_session;
    /* The call in the program that asked for it (0: none), which also determines the fields to keep. */
    uint16_t clone_site, resubmit_site, recirculate_site, digest_site;
    uint32_t trace_packet, trace_copy; /* numbers in a trace; 0: not traced */
    bool prepared; /* metadata is set already: resubmitted or recirculated */
    bool aborted;  /* an assertion failed or a loop did not end */
    bool congested; /* its queue was longer than the threshold for marks */
    uint8_t queue;
    uint64_t queued_ns;
    int send_error; /* errno, once an interface has had it; 0: sent */
};

struct job_queue {
    struct job *first, *last;
    uint32_t count;
};

struct job_pool {
    uint8_t *memory;
    struct job *free;
    uint32_t count, made, in_use;
    uint32_t headroom_bytes, phv_bytes;
    size_t stride; /* bytes from one job to the next */
};

int job_pool_init(struct job_pool *pool, uint32_t count, uint32_t phv_bytes, uint32_t headroom_bytes,
                  uint32_t frame_bytes);
void job_pool_free(struct job_pool *pool);

/* Returns a job with an empty frame behind the headroom, its phv and scalars not yet set; NULL if there is
 * none. */
struct job *job_take(struct job_pool *pool);

static inline void job_release(struct job_pool *pool, struct job *job) {
    job->next = pool->free;
    pool->free = job;
    pool->in_use--;
}

static inline void job_push(struct job_queue *queue, struct job *job) {
    job->next = NULL;
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    queue->count++;
}

static inline struct job *job_pop(struct job_queue *queue) {
    struct job *job = queue->first;
    if (!job) return NULL;
    queue->first = job->next;
    if (!queue->first) queue->last = NULL;
    queue->count--;
    return job;
}

/* Sets all but the phv for a frame of `length` bytes that lies at job->data. */
static inline void job_begin(struct job *job, uint32_t length, uint16_t ingress_port) {
    job->length = job->ingress_length = job->packet_length = length;
    job->payload_offset = 0;
    job->truncate_bytes = UINT32_MAX;
    job->passes = 0;
    job->ingress_port = ingress_port;
    job->egress_port = 0;
    job->clone_session = 0;
    job->clone_site = job->resubmit_site = job->recirculate_site = job->digest_site = 0;
    job->prepared = job->aborted = job->congested = false;
    job->trace_packet = job->trace_copy = 0;
}

#endif
