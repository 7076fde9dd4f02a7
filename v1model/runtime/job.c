#include "job.h"

#include <stdlib.h>

static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

int job_pool_init(struct job_pool *pool, uint32_t count, uint32_t phv_bytes, uint32_t headroom_bytes,
                  uint32_t frame_bytes) {
    size_t head = round_up(sizeof(struct job)), phv = round_up(phv_bytes), headroom = round_up(headroom_bytes);
    size_t stride = head + phv + headroom + round_up(frame_bytes);
    *pool = (struct job_pool){.count = count, .phv_bytes = phv_bytes, .headroom_bytes = (uint32_t)headroom,
                              .frame_bytes = frame_bytes};
    pool->memory = aligned_alloc(64, stride * count);
    if (!pool->memory) return -1;
    for (uint32_t i = count; i-- > 0;) {
        struct job *job = (struct job *)(void *)(pool->memory + i * stride);
        job->phv = (struct phv *)(void *)((uint8_t *)job + head);
        job->buffer = (uint8_t *)job + head + phv;
        job->next = pool->free;
        pool->free = job;
    }
    return 0;
}

void job_pool_free(struct job_pool *pool) { free(pool->memory); }

struct job *job_take(struct job_pool *pool) {
    struct job *job = pool->free;
    if (!job) return NULL;
    pool->free = job->next;
    pool->in_use++;
    job->data = job->buffer + pool->headroom_bytes;
    return job;
}
