/* The traffic manager between ingress and egress. It decides which packets wait for a port, in which order
 * and how fast they leave, and which are dropped or marked. A switch without it (sw->queues NULL) runs
 * egress for each packet at once. */
#ifndef WEIR_QUEUES_H
#define WEIR_QUEUES_H

#include "port.h"

enum {
    QUEUES = 8, /* of a port, one for each value of standard_metadata.priority */
    DEFAULT_DEPTH_PACKETS = 64,
    SPARE_JOBS = 512, /* reserved for packets that are not in queues */
};

/* 0 stands for no limit, no mark, and for a weight: strict priority. */
struct queue_limits {
    uint64_t depth_packets, depth_bytes, packets_per_s, bits_per_s, weight, ecn_packets, ecn_bytes;
};

struct queue {
    struct queue_limits limits;
    struct job_queue jobs;
    uint64_t bytes;     /* waiting */
    uint64_t packet_ns; /* 1 / packets_per_s */
    uint64_t sent, dropped, marked;
};

struct port_queues {
    uint64_t ready_ns[QUEUES]; /* when the queue's first packet, or its next one, may leave: the port left aside */
    uint64_t packets_per_s, packet_ns, bits_per_s, free_ns;
    uint64_t credit; /* packets that the queue `turn` may still send in its turn */
    uint32_t packets, turn;
    uint8_t used, weighted; /* a bit for each queue with packets, with a weight */
    bool listed;
    struct queue queue[QUEUES];
};

struct queues {
    uint32_t per_port; /* priorities from here on are the highest */
    uint32_t waiting;  /* packets in all queues */
    uint64_t next_ns;  /* of the switch's clock: no packet leaves before; UINT64_MAX: none waits */
    uint32_t listed_count;
    uint16_t listed[PORTS]; /* ports with packets */
    bool limited[PORTS];    /* packets for the others go to egress at once */
    struct port_queues port[PORTS];
};

/* The functions below are for ports that are limited. This one returns whether the packet leaves at once,
 * because no packet waits in the switch, and its queue and port are free; then the queue counts it. */
bool queues_pass(struct vswitch *sw, struct job *job, unsigned priority);
/* Returns whether the packet's queue has space; otherwise the queue counts the drop. */
bool queues_admit(struct vswitch *sw, const struct job *job, unsigned priority);
/* Takes the packet, which was admitted. */
void queues_put(struct vswitch *sw, struct job *job, unsigned priority);
/* Runs egress for every packet whose time has come, in the order of those times. In the library form the
 * switch's clock stands at that time meanwhile. */
void queues_serve(struct vswitch *sw, uint64_t until_us);
/* Drops the waiting packets. */
void queues_clear(struct vswitch *sw);
/* Marks a packet that met a long queue, if it is IPv4 or IPv6 and declares that it can be marked (RFC
 * 3168). */
void queues_mark(struct vswitch *sw, struct job *job);

#endif
