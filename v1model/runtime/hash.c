/* Reflected CRCs by tables (CRC-32: eight bytes at a time, "slicing by 8"), and sums; see hash.h. */
#include "hash.h"

static const uint16_t crc16_nibble[16] = {
    0x0000, 0xcc01, 0xd801, 0x1400, 0xf001, 0x3c00, 0x2800, 0xe401,
    0xa001, 0x6c00, 0x7800, 0xb401, 0x5000, 0x9c01, 0x8801, 0x4400,
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

void crc32_init(struct crc32 *crc32) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
        crc32->table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int i = 1; i < 8; i++) {
            uint32_t before = crc32->table[i - 1][byte];
            crc32->table[i][byte] = before >> 8 ^ crc32->table[0][before & 255];
        }
}

uint64_t hash_crc32(const struct crc32 *crc32, const uint8_t *data, size_t length) {
    const uint32_t(*table)[256] = crc32->table;
    uint32_t crc = UINT32_MAX;
    for (; length >= 8; data += 8, length -= 8) {
        uint64_t word = __builtin_bswap64(load_be(data, 8)) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++) crc ^= table[7 - i][word >> 8 * i & 255];
    }
    for (size_t i = 0; i < length; i++) crc = crc >> 8 ^ table[0][(crc ^ data[i]) & 255];
    return crc ^ UINT32_MAX;
}

static uint32_t reflected(uint32_t value, unsigned bits) {
    uint32_t result = 0;
    for (unsigned i = 0; i < bits; i++) result |= (value >> i & 1) << (bits - 1 - i);
    return result;
}

uint64_t hash_custom_crc(const struct custom_crc *crc, const uint8_t *data, size_t length) {
    uint32_t top = UINT32_C(1) << (crc->bits - 1), remainder = crc->initial;
    for (size_t i = 0; i < length; i++) {
        uint32_t byte = crc->data_reflected ? reflected(data[i], 8) : data[i];
        remainder ^= byte << (crc->bits - 8);
        for (int bit = 0; bit < 8; bit++) remainder = remainder << 1 ^ (remainder & top ? crc->polynomial : 0);
    }
    remainder &= top | (top - 1);
    return (crc->remainder_reflected ? reflected(remainder, crc->bits) : remainder) ^ crc->final_xor;
}

uint64_t hash_xor16(const uint8_t *data, size_t length) {
    uint64_t result = 0;
    for (size_t i = 0; i < length; i++) result ^= (uint64_t)data[i] << (i % 2 ? 0 : 8);
    return result;
}

uint64_t hash_identity(const uint8_t *data, size_t length) {
    return load_be(data, length < 8 ? (unsigned)length : 8);
}

/* Words of any size and order are allowed by RFC 1071. So these are 8 bytes in the machine's order, in two
 * parallel sums, as each has to wait for its own carries. */
static uint64_t hash_sum(const uint8_t *data, size_t length) {
    u128 even = 0, odd = 0;
    for (; length >= 16; data += 16, length -= 16) {
        even += hash_word(data, 8);
        odd += hash_word(data + 8, 8);
    }
    if (length >= 8) {
        even += hash_word(data, 8);
        data += 8, length -= 8;
    }
    u128 sum = even + odd + hash_word(data, (unsigned)length);
    return ((uint64_t)sum & UINT32_MAX) + ((uint64_t)sum >> 32) + (uint64_t)(sum >> 64);
}

static uint16_t fold(uint64_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

uint64_t hash_sum_at(size_t offset, const uint8_t *data, size_t length) {
    uint64_t sum = hash_sum(data, length);
    return offset % 2 ? __builtin_bswap16(fold(sum)) : sum;
}

uint64_t hash_csum16(uint64_t summed, const uint8_t *data, size_t length, const uint8_t *payload, size_t payload_bytes) {
    uint64_t sum = summed + hash_sum(data, length);
    if (payload_bytes) sum += hash_sum_at(length, payload, payload_bytes);
    return (uint16_t)~__builtin_bswap16(fold(sum));
}
