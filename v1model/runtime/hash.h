/* The hash algorithms of v1model over a byte string, as simple_switch computes them, and the keyed
 * hash of the tables. */
#ifndef WEIR_HASH_H
#define WEIR_HASH_H

#include <stdbool.h>

#include "bits.h"

uint64_t hash_crc16(const uint8_t *data, size_t length); /* CRC-16/ARC; crc16_custom's default too */

struct crc32 {
    uint32_t table[8][256];
};
void crc32_init(struct crc32 *crc32);
/* CRC-32/ISO-HDLC; crc32_custom's default too */
uint64_t hash_crc32(const struct crc32 *crc32, const uint8_t *data, size_t length);

/* A CRC of up to 32 bits whose parameters the control plane may set; until then `is_set` is false. */
struct custom_crc {
    uint32_t polynomial, initial, final_xor;
    uint8_t bits;
    bool is_set, data_reflected, remainder_reflected;
};
uint64_t hash_custom_crc(const struct custom_crc *crc, const uint8_t *data, size_t length);

uint64_t hash_xor16(const uint8_t *data, size_t length);
uint64_t hash_identity(const uint8_t *data, size_t length); /* the first 8 bytes as a number */

/* Returns the ones' complement sum of a piece that begins at this offset of the summed data, not folded:
 * 34 bits at most. */
uint64_t hash_sum_at(size_t offset, const uint8_t *data, size_t length);

/* Returns the checksum of RFC 1071 over `data`, `payload`, and the sums of other pieces. */
uint64_t hash_csum16(uint64_t summed, const uint8_t *data, size_t length, const uint8_t *payload, size_t payload_bytes);

static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    u128 product = (u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_word(const uint8_t *from, unsigned bytes) {
    uint64_t word = 0;
    memcpy(&word, from, bytes);
    return word;
}

/* Hashes 8-byte words by multiplying and mixing, keyed by two secret words so that nobody can prepare
 * colliding keys. */
static inline uint64_t hash_key(const uint8_t *key, unsigned bytes, const uint64_t seed[2]) {
    uint64_t state = seed[0] ^ bytes;
    unsigned i = 0;
    for (; i + 8 <= bytes; i += 8) state = hash_mix(state ^ hash_word(key + i, 8), seed[1] ^ UINT64_C(0x9e3779b97f4a7c15));
    if (i < bytes) state = hash_mix(state ^ hash_word(key + i, bytes - i), seed[1] ^ UINT64_C(0xd1b54a32d192ed03));
    return hash_mix(state ^ seed[1], UINT64_C(0xa0761d6478bd642f));
}

#endif
