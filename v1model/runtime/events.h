/* Events of the switch for the control plane: packets for the CPU port, digest samples, idle entries, log
 * messages. Producers append to one buffer while the consumer reads the other; both are bounded. */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { EVENT_BYTES = 4 << 20 };

enum event_kind { EVENT_PACKET, EVENT_DIGEST, EVENT_IDLE, EVENT_LOG, EVENT_PORT, EVENT_TRACE };

/* Head of an event, followed by `bytes` of data and padding to 8. */
struct event {
    uint32_t kind, bytes;
    uint32_t id;     /* port, digest, table, message or site of a trace */
    uint32_t handle; /* idle entry; errno of a port; packet of a trace */
    uint64_t time_us;
};

struct events {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    bool waiting, interrupted;
    uint32_t samples; /* of digests that still have to come before these end a wait */
    uint8_t *filling, *reading;
    uint32_t filled;
};

int events_init(struct events *events);
void events_free(struct events *events);
void events_clear(struct events *events);

/* Appends an event; returns false if the buffer is full. */
bool events_push(struct events *events, struct event event, const uint8_t *data);

/* Waits up to `timeout_us` for events, then returns all of them; valid until the next call. Digest samples
 * end the wait only when there are `samples` of them: waking for each would cost more than handling it. */
uint32_t events_wait(struct events *events, uint64_t timeout_us, uint32_t samples, const uint8_t **data);
void events_interrupt(struct events *events);

#endif
