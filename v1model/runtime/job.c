#include "job.h"

#include <stddef.h>
#include <sys/mman.h>

int job_pool_init(struct job_pool *pool, uint32_t count, uint32_t phv_bytes, uint32_t headroom_bytes,
                  uint32_t frame_bytes) {
    size_t head = whole_lines(sizeof(struct job)), phv = whole_lines(phv_bytes), headroom = whole_lines(headroom_bytes);
    size_t stride = head + phv + headroom + whole_lines(frame_bytes);
    *pool = (struct job_pool){.count = count, .phv_bytes = (uint32_t)phv, .headroom_bytes = (uint32_t)headroom,
                              .stride = stride};
    /* Most of this memory is never touched. It is not reserved, or a process with some hundreds of
     * switches could not fork. */
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, stride * count, PROT_READ | PROT_WRITE, flags, -1, 0);
    pool->memory = memory == MAP_FAILED ? NULL : memory;
    return pool->memory ? 0 : -1;
}

/* Returns the next job of memory without jobs so far. Jobs that no packet needed are never touched, and so
 * take no memory, however long frames may be. */
static struct job *make_job(struct job_pool *pool) {
    if (pool->made == pool->count) return NULL;
    struct job *job = (struct job *)(void *)(pool->memory + pool->stride * pool->made++);
    job->phv = (struct phv *)(void *)((uint8_t *)job + whole_lines(sizeof(struct job)));
    job->buffer = (uint8_t *)job->phv + pool->phv_bytes;
    return job;
}

void job_pool_free(struct job_pool *pool) {
    if (pool->memory) munmap(pool->memory, pool->stride * pool->count);
}

struct job *job_take(struct job_pool *pool) {
    struct job *job = pool->free;
    if (job)
        pool->free = job->next;
    else if (!(job = make_job(pool)))
        return NULL;
    pool->in_use++;
    job->data = job->buffer + pool->headroom_bytes;
    return job;
}
