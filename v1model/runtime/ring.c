#include "ring.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "bits.h"

/* Returns the bytes of a slot for such a frame and the parts that the kernel writes before it: its header,
 * 16 bytes for a link's header, padding. */
static uint32_t slot_bytes(uint32_t mtu_bytes) {
    uint32_t head = TPACKET_ALIGN(TPACKET2_HDRLEN + 16);
    uint32_t wanted = (uint32_t)whole_lines(head + (mtu_bytes < RING_JUMBO_MTU ? mtu_bytes : RING_JUMBO_MTU));
    return wanted < RING_SLOT_BYTES ? RING_SLOT_BYTES : wanted;
}

int ring_open(struct ring *ring, int socket, uint32_t mtu_bytes, uint32_t bytes) {
    int version = TPACKET_V2, always_copy_long = 1;
    uint32_t slot = slot_bytes(mtu_bytes), block_slots = RING_BLOCK_BYTES / slot;
    uint32_t blocks = bytes / RING_BLOCK_BYTES, least = (RING_LEAST_SLOTS + block_slots - 1) / block_slots;
    if (blocks < least) blocks = least;
    struct tpacket_req request = {
        .tp_block_size = RING_BLOCK_BYTES,
        .tp_block_nr = blocks,
        .tp_frame_size = slot,
        .tp_frame_nr = blocks * block_slots,
    };
    if (setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(socket, SOL_PACKET, PACKET_COPY_THRESH, &always_copy_long, sizeof always_copy_long) ||
        setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
        return errno;
    size_t length = (size_t)blocks * RING_BLOCK_BYTES;
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0);
    if (memory == MAP_FAILED) return errno;
    *ring = (struct ring){
        .memory = memory, .bytes = length, .slot_bytes = slot, .block_slots = block_slots, .blocks = blocks};
    return 0;
}

void ring_close(struct ring *ring) {
    if (ring->memory) munmap(ring->memory, ring->bytes);
    ring->memory = NULL;
}

static struct tpacket2_hdr *slot(const struct ring *ring) {
    size_t at = (size_t)ring->block * RING_BLOCK_BYTES + (size_t)ring->next * ring->slot_bytes;
    return (struct tpacket2_hdr *)(void *)(ring->memory + at);
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
    if (++ring->next < ring->block_slots) return;
    ring->next = 0;
    if (++ring->block == ring->blocks) ring->block = 0;
}
