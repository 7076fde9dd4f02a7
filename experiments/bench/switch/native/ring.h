/* Frames received through memory shared with the kernel (packet_mmap(7), TPACKET_V2): whoever sends a
 * frame copies its beginning there, so that receiving costs next to nothing. */
#ifndef RING_H
#define RING_H

#include <stdint.h>

enum { RING_HEADER_BYTES = 128 /* at least so much of a frame is there to be read */ };

struct ring {
    uint8_t *memory;
    unsigned next;
};

/* For a port that is bound to its interface. Errors end the process with a message. */
struct ring ring_open(int port);

/* The next frame and its whole length, NULL if none waits; good until ring_release. */
const uint8_t *ring_next(const struct ring *ring, uint32_t *bytes);
void ring_release(struct ring *ring);

#endif
