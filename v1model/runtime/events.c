#include "events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int events_init(struct events *events) {
    pthread_condattr_t attributes;
    pthread_mutex_init(&events->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&events->ready, &attributes);
    pthread_condattr_destroy(&attributes);
    events->filling = malloc(EVENT_BYTES);
    events->reading = malloc(EVENT_BYTES);
    return events->filling && events->reading ? 0 : -1;
}

void events_free(struct events *events) {
    pthread_cond_destroy(&events->ready);
    pthread_mutex_destroy(&events->lock);
    free(events->filling);
    free(events->reading);
}

void events_clear(struct events *events) {
    pthread_mutex_lock(&events->lock);
    events->filled = 0;
    pthread_mutex_unlock(&events->lock);
}

bool events_push(struct events *events, struct event event, const uint8_t *data) {
    uint32_t bytes = (uint32_t)sizeof event + ((event.bytes + 7) & ~7u);
    pthread_mutex_lock(&events->lock);
    bool fits = bytes <= EVENT_BYTES - events->filled;
    if (fits) {
        uint8_t *to = events->filling + events->filled;
        memcpy(to, &event, sizeof event);
        if (event.bytes) memcpy(to + sizeof event, data, event.bytes);
        events->filled += bytes;
        if (event.kind != EVENT_DIGEST) events->samples = 0;
        else if (events->samples) events->samples--;
        if (events->waiting && !events->samples) pthread_cond_signal(&events->ready);
    }
    pthread_mutex_unlock(&events->lock);
    return fits;
}

static struct timespec deadline(uint64_t timeout_us) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + timeout_us % 1000000 * 1000;
    at.tv_sec += (time_t)(timeout_us / 1000000 + ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    return at;
}

uint32_t events_wait(struct events *events, uint64_t timeout_us, uint32_t samples, const uint8_t **data) {
    struct timespec until = deadline(timeout_us);
    pthread_mutex_lock(&events->lock);
    events->waiting = true;
    /* The events since the last call may be more than samples, and were not counted. */
    events->samples = events->filled ? 0 : samples;
    while (events->samples && !events->interrupted && timeout_us)
        if (pthread_cond_timedwait(&events->ready, &events->lock, &until) == ETIMEDOUT) break;
    events->waiting = events->interrupted = false;
    uint8_t *full = events->filling;
    uint32_t bytes = events->filled;
    events->filling = events->reading;
    events->reading = full;
    events->filled = 0;
    pthread_mutex_unlock(&events->lock);
    *data = full;
    return bytes;
}

void events_interrupt(struct events *events) {
    pthread_mutex_lock(&events->lock);
    events->interrupted = true;
    if (events->waiting) pthread_cond_signal(&events->ready);
    pthread_mutex_unlock(&events->lock);
}
