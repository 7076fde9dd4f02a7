/* Filter of traced packets, and their steps as events. Nothing here runs unless a program is compiled for
 * it. */
#include "trace.h"

#include <stdlib.h>

#include "api.h"

bool trace_wants(const struct trace_filter *filter, const struct job *job) {
    if (!filter->enabled || (filter->port != ANY_PORT && filter->port != job->ingress_port)) return false;
    if (job->length < filter->length) return false;
    for (uint32_t i = 0; i < filter->length; i++)
        if ((job->data[i] & filter->mask[i]) != filter->value[i]) return false;
    return true;
}

void emit_trace(struct vswitch *sw, const struct job *job, uint32_t site, const uint8_t *values, uint32_t bytes,
                const uint8_t *more, uint32_t more_bytes) {
    struct event event = {.kind = EVENT_TRACE, .id = site, .handle = job->trace_packet, .time_us = sw->now_us};
    uint32_t head = sizeof job->trace_copy;
    uint8_t *data = malloc(head + bytes + more_bytes);
    if (!data) return;
    event.bytes = head + bytes + more_bytes;
    memcpy(data, &job->trace_copy, head);
    memcpy(data + head, values, bytes);
    if (more_bytes) memcpy(data + head + bytes, more, more_bytes);
    if (!events_push(&sw->events, event, data)) sw->drops[DROPPED_EVENT_FULL]++;
    free(data);
}

void trace_sent(struct vswitch *sw, const struct job *job) {
    uint32_t port = job->egress_port;
    if (job->trace_packet) emit_trace(sw, job, TRACE_SENT, (const uint8_t *)&port, sizeof port, job->data, job->length);
}

void trace_lost(struct vswitch *sw, const struct job *job, uint32_t cause, uint32_t port) {
    uint32_t numbers[2] = {cause, port + 1};
    if (job->trace_packet) emit_trace(sw, job, TRACE_DROPPED, (const uint8_t *)numbers, sizeof numbers, NULL, 0);
}

void trace_not_taken(struct vswitch *sw, uint64_t frames, uint32_t port) {
    const struct trace_filter *filter = &sw->trace;
    if (!filter->enabled || filter->length || (filter->port != ANY_PORT && filter->port != port)) return;
    for (uint64_t i = 0; i < frames; i++) {
        struct job job = {.trace_packet = ++sw->trace.packets, .trace_copy = ++sw->trace.copies};
        trace_lost(sw, &job, DROPPED_OVERSIZE, port);
    }
}

void weir_trace(struct vswitch *sw, uint32_t enabled, uint32_t port, const uint8_t *value, const uint8_t *mask, uint32_t length) {
    switch_lock(sw);
    struct trace_filter *filter = &sw->trace;
    filter->enabled = enabled;
    filter->port = port;
    filter->length = length < TRACE_PATTERN_BYTES ? length : TRACE_PATTERN_BYTES;
    for (uint32_t i = 0; i < filter->length; i++) {
        filter->mask[i] = mask[i];
        filter->value[i] = value[i] & mask[i];
    }
    switch_unlock(sw);
}
