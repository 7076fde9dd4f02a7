/* Output: to the CPU's event queue, to an interface, or to the outbox of the library form. */
#include "port.h"

#include <errno.h>
#include <stdlib.h>

#include "api.h"
#include "trace.h"

uint32_t port_depth(const struct vswitch *sw, unsigned port) {
    const struct port *p = port < PORTS ? sw->ports.port[port] : NULL;
    return p ? p->queued : 0;
}

static void output_to_cpu(struct vswitch *sw, const struct job *job) {
    struct event event = {.kind = EVENT_PACKET, .id = job->egress_port, .bytes = job->length, .time_us = sw->now_us};
    if (!events_push(&sw->events, event, job->data)) sw->drops[DROPPED_EVENT_FULL]++;
}

static bool grow_outbox(struct ports *ports, uint32_t bytes) {
    uint32_t capacity = ports->outbox_capacity ? ports->outbox_capacity : 1 << 16;
    while (capacity - ports->outbox_used < bytes) capacity *= 2;
    if (capacity > OUTBOX_BYTES) return false;
    if (capacity == ports->outbox_capacity) return true;
    uint8_t *outbox = realloc(ports->outbox, capacity);
    if (!outbox) return false;
    ports->outbox = outbox;
    ports->outbox_capacity = capacity;
    return true;
}

static void output_to_outbox(struct vswitch *sw, const struct job *job) {
    struct ports *ports = &sw->ports;
    struct output_record head = {job->egress_port, job->length, sw->now_us};
    uint32_t bytes = (uint32_t)sizeof head + ((job->length + 3) & ~3u);
    if (!grow_outbox(ports, bytes)) {
        sw->drops[DROPPED_NO_BUFFER]++;
        return;
    }
    uint8_t *to = ports->outbox + ports->outbox_used;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, job->data, job->length);
    ports->outbox_used += bytes;
}

static void queue(struct vswitch *sw, struct port *port, struct job *job) {
    struct ports *ports = &sw->ports;
    if (port->queued == BURST) ports_flush(sw);
    if (!port->queued) ports->dirty[ports->dirty_count++] = job->egress_port;
    port->queue[port->queued++] = job;
}

void port_output(struct vswitch *sw, struct job *job) {
    struct port *port = job->egress_port < PORTS ? sw->ports.port[job->egress_port] : NULL;
    bool is_for_cpu = job->egress_port == sw->cpu_port;
    if (is_for_cpu) output_to_cpu(sw, job);
    if (port && !port->down) {
        queue(sw, port, job);
        return;
    }
    if (!sw->ports.running) output_to_outbox(sw, job);
    if (!sw->ports.running || is_for_cpu) {
        trace_sent(sw, job);
    } else {
        sw->drops[DROPPED_NO_PORT]++;
        trace_lost(sw, job, DROPPED_NO_PORT, job->egress_port);
    }
    job_release(&sw->pool, job);
}

enum { FIRST_LOOK_US = 1000, LAST_LOOK_US = 1000000 };

static void look_after(struct vswitch *sw, uint64_t us) {
    sw->ports.look_after_us = us < LAST_LOOK_US ? us : LAST_LOOK_US;
    sw->ports.look_us = clock_now_us(sw) + sw->ports.look_after_us;
}

void port_failed(struct vswitch *sw, uint32_t number) {
    struct port *port = sw->ports.port[number];
    if (!port->down && interface_is_gone(port)) {
        port->down = true;
        port->error = ENODEV;
        interface_close(port);
    }
    if (port->error == ENETDOWN && !sw->ports.look_us) look_after(sw, FIRST_LOOK_US);
    if (port->error == port->reported) return;
    port->reported = port->error;
    struct event event = {.kind = EVENT_PORT, .id = number, .handle = (uint32_t)port->error, .time_us = sw->now_us};
    if (!events_push(&sw->events, event, NULL)) sw->drops[DROPPED_EVENT_FULL]++;
}

void ports_look_again(struct vswitch *sw) {
    bool any_down = false;
    if (!sw->ports.look_us || clock_now_us(sw) < sw->ports.look_us) return;
    for (uint32_t i = 0; i < PORTS; i++) {
        struct port *port = sw->ports.port[i];
        if (!port || port->down || port->error != ENETDOWN) continue;
        if (interface_is_gone(port))
            port_failed(sw, i);
        else
            any_down |= !interface_link_is_up(port);
    }
    sw->ports.look_us = 0;
    if (any_down) look_after(sw, 2 * sw->ports.look_after_us);
}

int ports_patience_ms(const struct vswitch *sw) {
    uint64_t look_us = sw->ports.look_us;
    if (!look_us) return -1;
    uint64_t now_us = clock_now_us(sw);
    return look_us > now_us ? (int)((look_us - now_us) / 1000 + 1) : 0;
}

void weir_look_at_links(struct vswitch *sw) {
    switch_lock(sw);
    for (uint32_t i = 0; i < PORTS; i++)
        sw->ports.link_down[i] = sw->ports.port[i] && !interface_link_is_up(sw->ports.port[i]);
    switch_unlock(sw);
}

/* Reports the outcome of a packet that an interface had. */
static void tell_outcome(struct vswitch *sw, const struct job *job) {
    enum drop_cause cause = job->send_error == EMSGSIZE ? DROPPED_BEYOND_MTU : DROPPED_TRANSMIT;
    if (!job->send_error) {
        trace_sent(sw, job);
        return;
    }
    sw->drops[cause]++;
    trace_lost(sw, job, cause, job->egress_port);
}

void ports_send(struct vswitch *sw) {
    struct ports *ports = &sw->ports;
    for (uint32_t i = 0; i < ports->dirty_count; i++) {
        struct port *port = ports->port[ports->dirty[i]];
        if (!interface_send(port)) port_failed(sw, ports->dirty[i]);
        for (uint32_t k = 0; k < port->queued; k++) {
            tell_outcome(sw, port->queue[k]);
            job_push(&ports->sent, port->queue[k]);
        }
        port->queued = 0;
    }
    ports->dirty_count = 0;
}

void ports_reclaim(struct vswitch *sw) {
    struct job *job;
    while ((job = job_pop(&sw->ports.sent))) job_release(&sw->pool, job);
}

void ports_flush(struct vswitch *sw) {
    ports_send(sw);
    ports_reclaim(sw);
}

uint32_t weir_take_outputs(struct vswitch *sw, const uint8_t **records) {
    switch_lock(sw);
    uint32_t used = sw->ports.outbox_used;
    *records = sw->ports.outbox;
    sw->ports.outbox_used = 0;
    switch_unlock(sw);
    return used;
}
