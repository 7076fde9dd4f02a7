/* Bitwise-reflected CRCs by nibble tables (64 bytes of table each), and sums; see hash.h. */
#include "hash.h"

static const uint16_t crc16_nibble[16] = {
    0x0000, 0xcc01, 0xd801, 0x1400, 0xf001, 0x3c00, 0x2800, 0xe401,
    0xa001, 0x6c00, 0x7800, 0xb401, 0x5000, 0x9c01, 0x8801, 0x4400,
};

static const uint32_t crc32_nibble[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint64_t hash_crc16(const uint8_t *data, size_t length) {
    uint16_t crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        crc = (uint16_t)(crc >> 4 ^ crc16_nibble[crc & 15]);
        crc = (uint16_t)(crc >> 4 ^ crc16_nibble[crc & 15]);
    }
    return crc;
}

uint64_t hash_crc32(const uint8_t *data, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ crc32_nibble[crc & 15];
        crc = crc >> 4 ^ crc32_nibble[crc & 15];
    }
    return crc ^ UINT32_MAX;
}

uint64_t hash_xor16(const uint8_t *data, size_t length) {
    uint64_t result = 0;
    for (size_t i = 0; i < length; i++) result ^= (uint64_t)data[i] << (i % 2 ? 0 : 8);
    return result;
}

uint64_t hash_identity(const uint8_t *data, size_t length) {
    return load_be(data, length < 8 ? (unsigned)length : 8);
}

/* Ones' complement sum of 8-byte words of the machine's order, whose halves are added up at last: RFC
 * 1071 allows any word size and order. */
static uint64_t sum_words(const uint8_t *data, size_t length) {
    uint64_t sum = 0, carries = 0;
    for (; length >= 8; data += 8, length -= 8) carries += __builtin_add_overflow(sum, hash_word(data, 8), &sum);
    carries += __builtin_add_overflow(sum, hash_word(data, (unsigned)length), &sum);
    return (sum & UINT32_MAX) + (sum >> 32) + carries;
}

static uint16_t fold(uint64_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

uint64_t hash_csum16(const uint8_t *data, size_t length, const uint8_t *payload, size_t payload_bytes) {
    uint64_t sum = sum_words(data, length);
    if (payload_bytes) {
        uint16_t rest = fold(sum_words(payload, payload_bytes));
        sum += length % 2 ? __builtin_bswap16(rest) : rest;
    }
    return (uint16_t)~__builtin_bswap16(fold(sum));
}
