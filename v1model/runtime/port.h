/* Ports. A port may be attached to an interface (AF_PACKET). Frames that leave by other ports go to the
 * outbox of the library form. */
#ifndef WEIR_PORT_H
#define WEIR_PORT_H

#include "job.h"
#include "ring.h"

struct vswitch;

enum { PORTS = 512, BURST = 32, OUTBOX_BYTES = 64 << 20, INTERFACE_NAME_BYTES = 16 };

struct port_statistics {
    uint64_t received_packets, received_bytes, sent_packets, sent_bytes;
    uint64_t oversize, beyond_mtu, transmit_drops, kernel_drops;
    uint64_t unfinished_checksums; /* frames whose sender left the checksum to its network card */
};

struct port {
    int socket;
    int claim;  /* keeps other switches off the interface */
    struct ring ring;
    bool down;  /* the interface is gone */
    int error;  /* errno of the last failure */
    int reported;
    uint32_t queued;
    struct job *queue[BURST];
    struct port_statistics statistics;
    char interface[INTERFACE_NAME_BYTES];
    unsigned index; /* the interface's own: another one may get its name */
};

/* Frame that left in the library form, and its time. */
struct output_record {
    uint32_t port, length;
    uint64_t time_us;
};

struct ports {
    struct port *port[PORTS];
    int epoll, wake, timer; /* -1 until needed */
    bool running, keep_running;
    uint64_t look_us, look_after_us; /* when lost interfaces are looked at again (0: never), and how long after the last look */
    bool link_down[PORTS];    /* as weir_look_at_links last saw it; ports without interface are up */
    uint32_t dirty_count;
    uint16_t dirty[PORTS];    /* ports with queued packets */
    struct job_queue sent;    /* to be given back to the pool */
    struct job_queue injected; /* from the control plane while forwarding */
    uint8_t *outbox;          /* output records, each with its frame behind it, padded to 4 */
    uint32_t outbox_used, outbox_capacity;
};

/* Sends the frame out of job->egress_port and takes the job. */
void port_output(struct vswitch *sw, struct job *job);

/* Returns how many packets wait for a port. */
uint32_t port_depth(const struct vswitch *sw, unsigned port);

/* Sends queued frames. ports_send leaves the jobs in `sent`: it needs no lock. */
void ports_send(struct vswitch *sw);
void ports_reclaim(struct vswitch *sw);
void ports_flush(struct vswitch *sw);
void ports_close(struct vswitch *sw);

/* Reports an error to the control plane, and gives up a port whose interface is gone. */
void port_failed(struct vswitch *sw, uint32_t number);
/* Looks again at ports whose interface is down, until it is up or gone; in the end once a second. This is
 * needed because the kernel reports that an interface is being deleted while it still exists, and does not
 * report again. */
void ports_look_again(struct vswitch *sw);
/* Returns how long the forwarding thread may sleep, in ms; -1: until something happens. */
int ports_patience_ms(const struct vswitch *sw);

/* In interface.c: one socket. Errors are errno. */
int interface_open(struct port *port, const char *interface, uint32_t ring_bytes);
void interface_close(struct port *port);
/* Fills up to `count` jobs with frames; returns how many. */
uint32_t interface_receive(struct port *port, struct job **jobs, uint32_t count, uint32_t frame_bytes);
/* Sends the queue. Frames that can't be sent are counted, and have the reason in send_error. Returns false
 * for an error in port->error. */
bool interface_send(struct port *port);
/* Returns whether the socket has an error to report, which is then in port->error. */
bool interface_take_error(struct port *port);
void interface_count_kernel_drops(struct port *port);
bool interface_is_gone(const struct port *port);
bool interface_link_is_up(const struct port *port);

#endif
