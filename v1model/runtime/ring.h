/* A receive ring (packet_mmap, TPACKET_V2): the kernel writes frames into shared memory, without a system
 * call or a copy of a socket buffer per packet. The size of a slot follows from the interface's MTU, up to
 * jumbo frames; longer frames come from the socket. */
#ifndef WEIR_RING_H
#define WEIR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_SLOT_BYTES = 2048, /* at least */
    RING_JUMBO_MTU = 9216,  /* the longest whose frames have room in a slot */
    RING_BLOCK_BYTES = 1 << 16,
    RING_BYTES = 4 << 20, /* of each of the first RING_LARGE_PORTS ports */
    RING_LEAST_SLOTS = 256, /* of any, and so of the others: a ring is memory that can't be swapped out */
    RING_LARGE_PORTS = 16,
};

struct ring {
    uint8_t *memory;
    size_t bytes;
    uint32_t slot_bytes, block_slots, blocks;
    uint32_t block, next; /* the next frame's block, and its slot there */
};

/* Frame of a slot. `copied`: the frame itself has to be read from the socket. */
struct ring_frame {
    const uint8_t *data;
    uint32_t length;
    bool truncated, copied, has_tag, unfinished_checksum;
    uint16_t tag_protocol, tag;
};

/* Opens the ring, before bind; returns 0 or errno. `bytes` is its approximate size limit; it has
 * RING_LEAST_SLOTS in any case. */
int ring_open(struct ring *ring, int socket, uint32_t mtu_bytes, uint32_t bytes);
void ring_close(struct ring *ring);

/* Returns whether there is a next frame, which is valid until ring_release. */
bool ring_peek(const struct ring *ring, struct ring_frame *frame);
void ring_release(struct ring *ring);

#endif
