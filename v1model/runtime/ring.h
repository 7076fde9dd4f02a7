/* A receive ring (packet_mmap, TPACKET_V2): the kernel writes frames into shared memory, no system call
 * and no copy of a socket buffer per packet. Frames too long for a slot come by way of the socket. */
#ifndef WEIR_RING_H
#define WEIR_RING_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RING_SLOT_BYTES = 2048,
    RING_BLOCK_BYTES = 1 << 16,
    RING_SLOTS = 2048,      /* of each of the first RING_LARGE_PORTS ports */
    RING_FEWER_SLOTS = 256, /* of the others: a ring is memory that can't be swapped out */
    RING_LARGE_PORTS = 16,
};

struct ring {
    uint8_t *memory;
    uint32_t slots, next;
};

/* What a slot holds. `copied`: the frame itself has to be read from the socket. */
struct ring_frame {
    const uint8_t *data;
    uint32_t length;
    bool truncated, copied, has_tag, unfinished_checksum;
    uint16_t tag_protocol, tag;
};

int ring_open(struct ring *ring, int socket, uint32_t slots); /* 0 or errno; before bind */
void ring_close(struct ring *ring);

/* The next frame, if there is one; it stays until ring_release. */
bool ring_peek(const struct ring *ring, struct ring_frame *frame);
void ring_release(struct ring *ring);

#endif
