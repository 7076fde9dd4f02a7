#include "ring.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>

int ring_open(struct ring *ring, int socket, uint32_t slots) {
    int version = TPACKET_V2, always_copy_long = 1;
    struct tpacket_req request = {
        .tp_block_size = RING_BLOCK_BYTES,
        .tp_block_nr = slots * RING_SLOT_BYTES / RING_BLOCK_BYTES,
        .tp_frame_size = RING_SLOT_BYTES,
        .tp_frame_nr = slots,
    };
    if (setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(socket, SOL_PACKET, PACKET_COPY_THRESH, &always_copy_long, sizeof always_copy_long) ||
        setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
        return errno;
    void *memory = mmap(NULL, (size_t)slots * RING_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0);
    if (memory == MAP_FAILED) return errno;
    *ring = (struct ring){.memory = memory, .slots = slots};
    return 0;
}

void ring_close(struct ring *ring) {
    if (ring->memory) munmap(ring->memory, (size_t)ring->slots * RING_SLOT_BYTES);
    ring->memory = NULL;
}

static struct tpacket2_hdr *slot(const struct ring *ring) {
    return (struct tpacket2_hdr *)(void *)(ring->memory + (size_t)ring->next * RING_SLOT_BYTES);
}

bool ring_peek(const struct ring *ring, struct ring_frame *frame) {
    const struct tpacket2_hdr *header = slot(ring);
    uint32_t status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
    if (!(status & TP_STATUS_USER)) return false;
    *frame = (struct ring_frame){
        .data = (const uint8_t *)header + header->tp_mac,
        .length = header->tp_snaplen,
        .truncated = header->tp_len > header->tp_snaplen,
        .copied = (status & TP_STATUS_COPY) != 0,
        .has_tag = (status & TP_STATUS_VLAN_VALID) != 0,
        .unfinished_checksum = (status & TP_STATUS_CSUMNOTREADY) != 0,
        .tag_protocol = status & TP_STATUS_VLAN_TPID_VALID ? header->tp_vlan_tpid : ETH_P_8021Q,
        .tag = header->tp_vlan_tci,
    };
    return true;
}

void ring_release(struct ring *ring) {
    __atomic_store_n(&slot(ring)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    ring->next = ring->next + 1 == ring->slots ? 0 : ring->next + 1;
}
