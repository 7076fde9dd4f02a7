#include "queues.h"

#include <stdlib.h>

#include "api.h"
#include "bits.h"
#include "switch.h"

static const uint64_t NS_PER_S = 1000000000u;

static struct queue *queue_of(const struct vswitch *sw, unsigned port, unsigned priority) {
    unsigned last = sw->queues->per_port - 1;
    return &sw->queues->port[port].queue[priority < last ? priority : last];
}

bool queues_admit(struct vswitch *sw, const struct job *job, unsigned priority) {
    struct queue *queue = queue_of(sw, job->egress_port, priority);
    const struct queue_limits *limits = &queue->limits;
    bool has_room = sw->queues->waiting + SPARE_JOBS < sw->pool.count &&
                    (!limits->depth_packets || queue->jobs.count < limits->depth_packets) &&
                    (!limits->depth_bytes || queue->bytes + job->packet_length <= limits->depth_bytes);
    queue->dropped += !has_room;
    return has_room;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t duration_ns(uint64_t packet_ns, uint64_t bits_per_s, uint32_t bytes) {
    return bits_per_s ? larger(packet_ns, (uint64_t)bytes * 8 * NS_PER_S / bits_per_s) : packet_ns;
}

static void count_sent(struct port_queues *queues, struct queue *queue, uint64_t at_ns, uint32_t bytes) {
    queue->sent++;
    queues->ready_ns[queue - queues->queue] = at_ns + duration_ns(queue->packet_ns, queue->limits.bits_per_s, bytes);
    queues->free_ns = at_ns + duration_ns(queues->packet_ns, queues->bits_per_s, bytes);
}

bool queues_pass(struct vswitch *sw, struct job *job, unsigned priority) {
    if (sw->queues->waiting) return false;
    struct port_queues *queues = &sw->queues->port[job->egress_port];
    struct queue *queue = queue_of(sw, job->egress_port, priority);
    uint64_t ready_ns = queues->ready_ns[queue - queues->queue];
    uint64_t now_ns = sw->now_us * 1000, at_ns = larger(now_ns, larger(ready_ns, queues->free_ns));
    bool fits = !queue->limits.depth_bytes || job->packet_length <= queue->limits.depth_bytes;
    if (at_ns > now_ns + 999 || queue->limits.weight || !fits) return false;
    job->congested = false;
    count_sent(queues, queue, at_ns, job->packet_length);
    return true;
}

void queues_put(struct vswitch *sw, struct job *job, unsigned priority) {
    struct queue *queue = queue_of(sw, job->egress_port, priority);
    struct queues *all = sw->queues;
    struct port_queues *queues = &all->port[job->egress_port];
    const struct queue_limits *limits = &queue->limits;
    job->congested = (limits->ecn_packets && queue->jobs.count >= limits->ecn_packets) ||
                     (limits->ecn_bytes && queue->bytes >= limits->ecn_bytes);
    job->queued_ns = sw->now_us * 1000;
    job->queue = (uint8_t)(queue - queues->queue);
    uint64_t *ready_ns = &queues->ready_ns[job->queue];
    if (!queue->jobs.first) {
        *ready_ns = larger(*ready_ns, job->queued_ns);
        all->next_ns = smaller(all->next_ns, larger(*ready_ns, queues->free_ns));
    }
    job_push(&queue->jobs, job);
    queues->used |= (uint8_t)(1u << job->queue);
    queue->bytes += job->packet_length;
    queues->packets++;
    all->waiting++;
    if (!queues->listed) all->listed[all->listed_count++] = job->egress_port;
    queues->listed = true;
}

static uint64_t port_next_ns(const struct port_queues *queues) {
    uint64_t next = UINT64_MAX;
    for (unsigned left = queues->used; left; left &= left - 1) next = smaller(next, queues->ready_ns[__builtin_ctz(left)]);
    return larger(next, queues->free_ns);
}

/* Returns the port whose next packet leaves first, or NULL if none waits. Ports with empty queues leave
 * the list. */
static struct port_queues *first_port(const struct vswitch *sw, uint64_t *at_ns) {
    struct queues *all = sw->queues;
    struct port_queues *first = NULL;
    *at_ns = UINT64_MAX;
    for (uint32_t i = 0; i < all->listed_count;) {
        struct port_queues *queues = &all->port[all->listed[i]];
        if (!queues->packets) {
            queues->listed = false;
            all->listed[i] = all->listed[--all->listed_count];
            continue;
        }
        uint64_t next = port_next_ns(queues);
        if (next < *at_ns || (next == *at_ns && queues < first)) {
            *at_ns = next;
            first = queues;
        }
        i++;
    }
    return first;
}

/* Returns the queues whose first packet may leave, as one bit each. */
static unsigned ready_queues(const struct port_queues *queues, uint64_t at_ns) {
    unsigned ready = 0;
    for (unsigned left = queues->used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (queues->ready_ns[i] <= at_ns) ready |= 1u << i;
    }
    return ready;
}

static unsigned highest(unsigned bits) { return 31u - (unsigned)__builtin_clz(bits); }

/* Returns the next queue, of which one is ready: by strict priority among those without a weight, from the
 * highest on; then those with a weight send as many packets in turn as their weights say. */
static struct queue *choose(struct port_queues *queues, uint64_t at_ns) {
    unsigned ready = ready_queues(queues, at_ns), strict = ready & ~(unsigned)queues->weighted;
    if (strict) return &queues->queue[highest(strict)];
    if (!queues->credit || !(ready >> queues->turn & 1)) {
        unsigned after = ready & ((1u << queues->turn) - 1);
        queues->turn = highest(after ? after : ready);
        queues->credit = queues->queue[queues->turn].limits.weight;
    }
    queues->credit--;
    return &queues->queue[queues->turn];
}

static uint64_t interval_ns(uint64_t packets_per_s) { return packets_per_s ? NS_PER_S / packets_per_s : 0; }

static struct job *take(struct vswitch *sw, struct port_queues *queues, uint64_t at_ns) {
    struct queue *queue = choose(queues, at_ns);
    struct job *job = job_pop(&queue->jobs);
    queue->bytes -= job->packet_length;
    queues->packets--;
    sw->queues->waiting--;
    count_sent(queues, queue, at_ns, job->packet_length);
    uint64_t *ready_ns = &queues->ready_ns[job->queue];
    if (queue->jobs.first)
        *ready_ns = larger(*ready_ns, queue->jobs.first->queued_ns);
    else
        queues->used &= (uint8_t)~(1u << job->queue);
    return job;
}

void queues_serve(struct vswitch *sw, uint64_t until_us) {
    uint64_t until_ns = until_us > UINT64_MAX / 1000 - 1 ? UINT64_MAX - 1 : until_us * 1000 + 999, at_ns;
    while (sw->queues->next_ns <= until_ns) {
        struct port_queues *queues = first_port(sw, &at_ns);
        sw->queues->next_ns = at_ns;
        if (at_ns > until_ns) return;
        struct job *job = take(sw, queues, at_ns);
        if (!sw->ports.running) sw->now_us = larger(sw->now_us, at_ns / 1000);
        sw->program->leave(sw, job);
        if (!sw->ports.running) switch_run_again(sw);
    }
}

void queues_clear(struct vswitch *sw) {
    for (unsigned i = 0; sw->queues && i < PORTS; i++) {
        struct port_queues *queues = &sw->queues->port[i];
        for (unsigned k = 0; k < QUEUES; k++) {
            struct job *job;
            while ((job = job_pop(&queues->queue[k].jobs))) job_release(&sw->pool, job);
            queues->queue[k].bytes = 0;
        }
        queues->packets = 0;
        queues->used = 0;
    }
    if (sw->queues) sw->queues->waiting = 0;
}

/* --- marks ------------------------------------------------------------------------------------------------------- */

enum { ETHERTYPE_OFFSET = 12, TAG_BYTES = 4, TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, TYPE_TAG = 0x8100, TYPE_OUTER_TAG = 0x88a8 };

/* Updates the checksum of a header in which a 16-bit word has changed (RFC 1624). */
static void update_checksum(uint8_t *checksum, uint32_t before, uint32_t after) {
    uint32_t sum = (~(uint32_t)load_be(checksum, 2) & 0xffff) + (~before & 0xffff) + after;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    store_be(checksum, 2, ~sum & 0xffff);
}

static bool mark(uint8_t *frame, uint32_t length) {
    uint32_t at = ETHERTYPE_OFFSET;
    while (at + TAG_BYTES + 2 <= length && (load_be(frame + at, 2) == TYPE_TAG || load_be(frame + at, 2) == TYPE_OUTER_TAG))
        at += TAG_BYTES;
    if (at + 2 > length) return false;
    uint64_t type = load_be(frame + at, 2);
    uint8_t *header = frame + at + 2;
    uint32_t left = length - at - 2;
    if (type == TYPE_IPV4 && left >= 20 && header[1] & 3) {
        uint32_t before = (uint32_t)load_be(header, 2);
        header[1] |= 3;
        update_checksum(header + 10, before, (uint32_t)load_be(header, 2));
        return true;
    }
    if (type == TYPE_IPV6 && left >= 40 && header[1] & 0x30) {
        header[1] |= 0x30;
        return true;
    }
    return false;
}

void queues_mark(struct vswitch *sw, struct job *job) {
    bool marked = mark(job->data, job->length);
    sw->queues->port[job->egress_port % PORTS].queue[job->queue % QUEUES].marked += marked;
}

/* --- the control plane's calls ------------------------------------------------------------------------------------ */

static struct queues *make_queues(uint32_t per_port) {
    struct queues *queues = calloc(1, sizeof *queues);
    if (!queues) return NULL;
    queues->per_port = per_port;
    for (unsigned i = 0; i < PORTS; i++)
        for (unsigned k = 0; k < QUEUES; k++) queues->port[i].queue[k].limits.depth_packets = DEFAULT_DEPTH_PACKETS;
    return queues;
}

int32_t weir_enable_queues(struct vswitch *sw, uint32_t per_port) {
    if (!per_port || per_port > QUEUES) return -1;
    switch_lock(sw);
    if (sw->queues)
        sw->queues->per_port = per_port;
    else
        sw->queues = make_queues(per_port);
    int32_t result = sw->queues ? 0 : -1;
    switch_unlock(sw);
    return result;
}

static bool is_limited(const struct port_queues *queues) {
    bool limited = queues->packets_per_s || queues->bits_per_s || queues->packets;
    for (unsigned i = 0; i < QUEUES; i++)
        limited |= queues->queue[i].limits.packets_per_s || queues->queue[i].limits.bits_per_s;
    return limited;
}

static void changed(struct vswitch *sw, unsigned port) {
    sw->queues->limited[port] = is_limited(&sw->queues->port[port]);
    sw->queues->next_ns = 0;
    if (sw->ports.running) forward_wake(sw);
}

void weir_set_port_rate(struct vswitch *sw, uint32_t port, uint64_t packets_per_s, uint64_t bits_per_s) {
    switch_lock(sw);
    struct port_queues *queues = &sw->queues->port[port % PORTS];
    queues->packets_per_s = packets_per_s;
    queues->packet_ns = interval_ns(packets_per_s);
    queues->bits_per_s = bits_per_s;
    queues->free_ns = 0;
    changed(sw, port % PORTS);
    switch_unlock(sw);
}

void weir_set_queue(struct vswitch *sw, uint32_t port, uint32_t queue, const uint64_t values[7]) {
    switch_lock(sw);
    struct port_queues *queues = &sw->queues->port[port % PORTS];
    struct queue *found = &queues->queue[queue % QUEUES];
    uint8_t bit = (uint8_t)(1u << queue % QUEUES);
    memcpy(&found->limits, values, sizeof found->limits);
    found->packet_ns = interval_ns(found->limits.packets_per_s);
    queues->ready_ns[queue % QUEUES] = found->jobs.first ? found->jobs.first->queued_ns : 0;
    queues->weighted = found->limits.weight ? queues->weighted | bit : queues->weighted & (uint8_t)~bit;
    changed(sw, port % PORTS);
    switch_unlock(sw);
}

void weir_queue(struct vswitch *sw, uint32_t port, uint32_t queue, uint64_t values[5]) {
    switch_lock(sw);
    const struct queue *found = &sw->queues->port[port % PORTS].queue[queue % QUEUES];
    uint64_t all[5] = {found->jobs.count, found->bytes, found->sent, found->dropped, found->marked};
    memcpy(values, all, sizeof all);
    switch_unlock(sw);
}

void weir_serve_queues(struct vswitch *sw, uint64_t until_us, uint32_t and_wait) {
    switch_lock(sw);
    if (sw->queues && !sw->ports.running) {
        queues_serve(sw, until_us);
        if (and_wait && until_us > sw->now_us) sw->now_us = until_us;
        ports_flush(sw);
    }
    switch_unlock(sw);
}
