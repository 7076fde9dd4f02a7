/* Lifetime and packets of a switch; the control plane's calls are in control.c. */
#include "switch.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "api.h"

enum { JOBS = 2048, VLAN_HEADROOM = 64 };

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_us(const struct vswitch *sw) {
    return sw->given_us == UINT64_MAX ? (clock_ns() - sw->start_ns) / 1000 : sw->given_us;
}

void weir_set_clock(struct vswitch *sw, uint64_t now_us) {
    switch_lock(sw);
    sw->given_us = now_us;
    switch_unlock(sw);
}

static void *zeroed(size_t count, size_t bytes) { return calloc(count ? count : 1, bytes ? bytes : 1); }

/* Returns the bytes of memory that belong to a register, not to its neighbour. */
static size_t array_bytes(const struct register_spec *spec) {
    return spec->offset_bytes ? 0 : whole_lines((size_t)spec->size * spec->stride_bytes);
}

static int init_tables(struct vswitch *sw) {
    const struct program *program = sw->program;
    sw->tables = zeroed(program->tables, sizeof *sw->tables);
    sw->profiles = zeroed(program->profiles, sizeof *sw->profiles);
    if (!sw->tables || !sw->profiles) return -1;
    for (uint32_t i = 0; i < program->tables; i++)
        if (table_init(&sw->tables[i], &program->table[i], sw->seed)) return -1;
    for (uint32_t i = 0; i < program->profiles; i++) sw->profiles[i].spec = &program->profile[i];
    return 0;
}

static int init_customs(struct vswitch *sw) {
    const struct program *program = sw->program;
    if (!(sw->custom = zeroed(program->customs, sizeof *sw->custom))) return -1;
    for (uint32_t i = 0; i < program->customs; i++)
        if (!(sw->custom[i] = program->custom[i].make())) return -1;
    return 0;
}

static void free_customs(struct vswitch *sw) {
    for (uint32_t i = 0; sw->custom && i < sw->program->customs; i++)
        if (sw->custom[i]) sw->program->custom[i].free(sw->custom[i]);
    free(sw->custom);
}

/* Allocates one piece of memory for all registers, of which only written parts take space. */
static int init_registers(struct vswitch *sw) {
    const struct program *program = sw->program;
    size_t used = 0;
    for (uint32_t i = 0; i < program->registers; i++) sw->register_bytes += array_bytes(&program->register_[i]);
    if (!sw->register_bytes) return 0;
    void *memory = mmap(NULL, sw->register_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return -1;
    sw->register_memory = memory;
    uint8_t *shared = memory;
    for (uint32_t i = 0; i < program->registers; i++) {
        const struct register_spec *spec = &program->register_[i];
        if (!spec->offset_bytes) shared = sw->register_memory + used;
        sw->registers[i] = shared + spec->offset_bytes;
        used += array_bytes(spec);
    }
    return 0;
}

static int init_state(struct vswitch *sw) {
    const struct program *program = sw->program;
    sw->registers = zeroed(program->registers, sizeof *sw->registers);
    sw->counters = zeroed(program->counters, sizeof *sw->counters);
    sw->meters = zeroed(program->meters, sizeof *sw->meters);
    sw->digest_enabled = zeroed(program->digests, sizeof *sw->digest_enabled);
    if (!sw->registers || !sw->counters || !sw->meters || !sw->digest_enabled) return -1;
    if (init_registers(sw)) return -1;
    for (uint32_t i = 0; i < program->counters; i++)
        if (!(sw->counters[i] = zeroed(program->counter[i].size, sizeof **sw->counters))) return -1;
    for (uint32_t i = 0; i < program->meters; i++)
        if (!(sw->meters[i] = zeroed(program->meter[i].size, sizeof **sw->meters))) return -1;
    return 0;
}

struct vswitch *weir_create(uint32_t cpu_port, uint32_t max_frame_bytes) {
    struct vswitch *sw = zeroed(1, sizeof *sw);
    if (!sw) return NULL;
    const struct program *program = sw->program = &weir_program;
    sw->cpu_port = cpu_port;
    sw->max_frame_bytes = max_frame_bytes;
    sw->start_ns = clock_ns();
    sw->given_us = UINT64_MAX;
    sw->ports.epoll = sw->ports.wake = sw->ports.timer = -1;
    pthread_mutex_init(&sw->turn, NULL);
    pthread_mutex_init(&sw->state, NULL);
    if (getrandom(sw->seed, sizeof sw->seed, 0) != sizeof sw->seed) sw->seed[0] = clock_ns();
    sw->random_state = sw->seed[0] | 1;
    crc32_init(&sw->crc32);
    uint32_t headroom = program->headroom_bytes + VLAN_HEADROOM;
    sw->scratch = zeroed(1, headroom + max_frame_bytes);
    if (!sw->scratch || job_pool_init(&sw->pool, JOBS, program->phv_bytes, headroom, max_frame_bytes) ||
        replication_init(&sw->replication) || events_init(&sw->events) || init_tables(sw) || init_state(sw) || init_customs(sw)) {
        weir_destroy(sw);
        return NULL;
    }
    return sw;
}

static void free_all(uint8_t **arrays, uint32_t count) {
    for (uint32_t i = 0; arrays && i < count; i++) free(arrays[i]);
    free(arrays);
}

void weir_destroy(struct vswitch *sw) {
    const struct program *program = sw->program;
    ports_close(sw);
    for (uint32_t i = 0; sw->tables && i < program->tables; i++) table_free(&sw->tables[i]);
    for (uint32_t i = 0; sw->profiles && i < program->profiles; i++) profile_clear(&sw->profiles[i]);
    free(sw->tables);
    free(sw->profiles);
    if (sw->register_memory) munmap(sw->register_memory, sw->register_bytes);
    free(sw->registers);
    free_all((uint8_t **)sw->counters, program->counters);
    free_all((uint8_t **)sw->meters, program->meters);
    free_customs(sw);
    free(sw->digest_enabled);
    free(sw->scratch);
    free(sw->queues);
    replication_free(&sw->replication);
    events_free(&sw->events);
    job_pool_free(&sw->pool);
    pthread_mutex_destroy(&sw->turn);
    pthread_mutex_destroy(&sw->state);
    free(sw);
}

void weir_go_over(struct vswitch *sw) {
    switch_lock(sw);
    sw->program = &weir_program;
    switch_unlock(sw);
}

void weir_reset(struct vswitch *sw) {
    const struct program *program = sw->program;
    switch_lock(sw);
    for (uint32_t i = 0; i < program->tables; i++) table_clear(&sw->tables[i]);
    for (uint32_t i = 0; i < program->profiles; i++) profile_clear(&sw->profiles[i]);
    if (sw->register_memory && madvise(sw->register_memory, sw->register_bytes, MADV_DONTNEED)) /* 0 from here on */
        memset(sw->register_memory, 0, sw->register_bytes); /* locked memory is not given back */
    for (uint32_t i = 0; i < program->counters; i++)
        memset(sw->counters[i], 0, program->counter[i].size * sizeof **sw->counters);
    for (uint32_t i = 0; i < program->meters; i++)
        memset(sw->meters[i], 0, program->meter[i].size * sizeof **sw->meters);
    memset(sw->digest_enabled, 0, program->digests);
    memset(sw->custom_crcs, 0, sizeof sw->custom_crcs);
    replication_clear(&sw->replication);
    events_clear(&sw->events);
    queues_clear(sw);
    switch_unlock(sw);
}

void emit_digest(struct vswitch *sw, uint32_t digest, const uint8_t *sample) {
    struct event event = {.kind = EVENT_DIGEST, .id = digest, .bytes = sw->program->digest_bytes[digest], .time_us = sw->now_us};
    if (!sw->digest_enabled[digest]) return;
    if (!events_push(&sw->events, event, sample)) sw->drops[DROPPED_EVENT_FULL]++;
}

void emit_log(struct vswitch *sw, uint32_t message, const uint8_t *arguments, uint32_t bytes) {
    struct event event = {.kind = EVENT_LOG, .id = message, .bytes = bytes, .time_us = sw->now_us};
    if (!sw->log_enabled) return;
    if (!events_push(&sw->events, event, arguments)) sw->drops[DROPPED_EVENT_FULL]++;
}

void switch_run(struct vswitch *sw, struct job *job) {
    sw->program->run(sw, job);
    switch_run_again(sw);
}

void switch_run_again(struct vswitch *sw) {
    struct job *job;
    unsigned passes = 0;
    while ((job = job_pop(&sw->again))) {
        if (++passes <= PASS_LIMIT)
            sw->program->run(sw, job);
        else
            drop(sw, job, DROPPED_PASS_LIMIT);
    }
}

/* Runs a packet, or hands it to the forwarding thread, which owns the ports while it runs. */
static void run_or_hand_over(struct vswitch *sw, struct job *job) {
    if (sw->ports.running) {
        job_push(&sw->ports.injected, job);
        forward_wake(sw);
    } else {
        switch_run(sw, job);
        if (sw->queues && sw->queues->waiting) queues_serve(sw, sw->now_us);
        ports_flush(sw);
    }
}

int32_t weir_inject(struct vswitch *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t now_us) {
    int32_t result = -1;
    switch_lock(sw);
    now_us = now_us == UINT64_MAX ? clock_now_us(sw) : now_us;
    if (sw->queues && sw->queues->waiting && !sw->ports.running) queues_serve(sw, now_us);
    sw->now_us = now_us;
    bool fits = length <= sw->max_frame_bytes, waiting = sw->ports.injected.count >= AGAIN_LIMIT;
    struct job *job = fits && !waiting ? job_take(&sw->pool) : NULL;
    if (job) {
        memcpy(job->data, frame, length);
        job_begin(job, length, (uint16_t)port);
        run_or_hand_over(sw, job);
        result = 0;
    } else {
        sw->drops[fits ? DROPPED_NO_BUFFER : DROPPED_OVERSIZE]++;
    }
    switch_unlock(sw);
    return result;
}
