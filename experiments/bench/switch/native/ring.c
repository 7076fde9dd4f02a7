#include "ring.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "packet_port.h"

enum { SLOT_BYTES = 256, SLOTS = 1 << 17, BLOCK_BYTES = 1 << 20 };

struct ring ring_open(int port) {
    int version = TPACKET_V2;
    struct tpacket_req layout = {.tp_block_size = BLOCK_BYTES,
                                 .tp_block_nr = SLOTS / (BLOCK_BYTES / SLOT_BYTES),
                                 .tp_frame_size = SLOT_BYTES,
                                 .tp_frame_nr = SLOTS};
    if (setsockopt(port, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(port, SOL_PACKET, PACKET_RX_RING, &layout, sizeof layout))
        fail("PACKET_RX_RING: %s", strerror(errno));
    int flags = MAP_SHARED | MAP_POPULATE;
    void *memory = mmap(NULL, (size_t)SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE, flags, port, 0);
    if (memory == MAP_FAILED) fail("mmap of the receive ring: %s", strerror(errno));
    return (struct ring){.memory = memory};
}

static struct tpacket2_hdr *slot(const struct ring *ring) {
    return (struct tpacket2_hdr *)(void *)(ring->memory + (size_t)ring->next * SLOT_BYTES);
}

const uint8_t *ring_next(const struct ring *ring, uint32_t *bytes) {
    struct tpacket2_hdr *head = slot(ring);
    if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) return NULL;
    *bytes = head->tp_len;
    return (const uint8_t *)head + head->tp_mac;
}

void ring_release(struct ring *ring) {
    __atomic_store_n(&slot(ring)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    ring->next = (ring->next + 1) % SLOTS;
}
