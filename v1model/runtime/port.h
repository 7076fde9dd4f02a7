/* Ports. A port is attached to an interface (AF_PACKET), or not: then what goes out of it lands in the
 * outbox of the library form. */
#ifndef WEIR_PORT_H
#define WEIR_PORT_H

#include "job.h"

struct vswitch;

enum { PORTS = 512, BURST = 32, OUTBOX_BYTES = 64 << 20 };

struct port_statistics {
    uint64_t received_packets, received_bytes, sent_packets, sent_bytes;
    uint64_t oversize, transmit_drops, kernel_drops;
};

struct port {
    int socket; /* -1: not attached */
    bool down;
    int error;  /* errno that took it down */
    uint32_t queued;
    struct job *queue[BURST];
    struct port_statistics statistics;
    char interface[16];
};

struct ports {
    struct port *port[PORTS];
    int epoll, wake; /* -1 until needed */
    bool running, stop;
    uint32_t dirty_count;
    uint16_t dirty[PORTS]; /* ports with queued packets */
    uint8_t *outbox;       /* records of port, length (both uint32_t), data padded to 4 */
    uint32_t outbox_used, outbox_capacity;
};

/* Sends the frame out of job->egress_port and releases the job. */
void port_output(struct vswitch *sw, struct job *job);

/* Packets that wait for a port. */
uint32_t port_depth(const struct vswitch *sw, unsigned port);

void ports_flush(struct vswitch *sw);
void ports_close(struct vswitch *sw);

#endif
