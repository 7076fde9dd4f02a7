/* Big-endian loads and stores of 1 to 16 bytes, bit fields at any bit offset, and masks.
 * P4's bit<N> up to 64 bits is a uint64_t, up to 128 a u128; unused upper bits are always 0. */
#ifndef WEIR_BITS_H
#define WEIR_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CACHE_LINE = 64 };
static inline size_t whole_lines(size_t bytes) { return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE; }

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static inline uint64_t mask64(unsigned width) { return width >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1; }
static inline u128 mask128(unsigned width) { return width >= 128 ? ~(u128)0 : ((u128)1 << width) - 1; }

/* Two's complement values in the low `width` bits, 1 <= width. */
static inline int64_t sign64(uint64_t value, unsigned width) {
    uint64_t sign = UINT64_C(1) << (width - 1);
    return (int64_t)((value ^ sign) - sign);
}
static inline i128 sign128(u128 value, unsigned width) {
    u128 sign = (u128)1 << (width - 1);
    return (i128)((value ^ sign) - sign);
}

static inline uint64_t load_be(const uint8_t *from, unsigned bytes) {
    uint16_t v2;
    uint32_t v4;
    uint64_t v8 = 0;
    switch (bytes) {
    case 1: return from[0];
    case 2: memcpy(&v2, from, 2); return __builtin_bswap16(v2);
    case 4: memcpy(&v4, from, 4); return __builtin_bswap32(v4);
    case 8: memcpy(&v8, from, 8); return __builtin_bswap64(v8);
    default:
        for (unsigned i = 0; i < bytes; i++) v8 = v8 << 8 | from[i];
        return v8;
    }
}

static inline void store_be(uint8_t *to, unsigned bytes, uint64_t value) {
    uint16_t v2 = __builtin_bswap16((uint16_t)value);
    uint32_t v4 = __builtin_bswap32((uint32_t)value);
    uint64_t v8 = __builtin_bswap64(value);
    switch (bytes) {
    case 1: to[0] = (uint8_t)value; break;
    case 2: memcpy(to, &v2, 2); break;
    case 4: memcpy(to, &v4, 4); break;
    case 8: memcpy(to, &v8, 8); break;
    default:
        for (unsigned i = bytes; i-- > 0; value >>= 8) to[i] = (uint8_t)value;
    }
}

static inline u128 load_be128(const uint8_t *from, unsigned bytes) {
    if (bytes <= 8) return load_be(from, bytes);
    return (u128)load_be(from, bytes - 8) << 64 | load_be(from + bytes - 8, 8);
}

static inline void store_be128(uint8_t *to, unsigned bytes, u128 value) {
    if (bytes <= 8) {
        store_be(to, bytes, (uint64_t)value);
    } else {
        store_be(to, bytes - 8, (uint64_t)(value >> 64));
        store_be(to + bytes - 8, 8, (uint64_t)value);
    }
}

/* Returns the `width` (<= 64) bits that begin `offset` bits (counted from the most significant) into
 * `from`. */
static inline uint64_t load_bits(const uint8_t *from, unsigned offset, unsigned width) {
    const uint8_t *first = from + offset / 8;
    unsigned skip = offset % 8, bytes = (skip + width + 7) / 8;
    unsigned drop = bytes * 8 - skip - width;
    if (width == 0) return 0;
    if (bytes <= 8) return load_be(first, bytes) >> drop & mask64(width);
    return (uint64_t)(load_be128(first, bytes) >> drop) & mask64(width);
}

static inline u128 load_bits128(const uint8_t *from, unsigned offset, unsigned width) {
    if (width <= 64) return load_bits(from, offset, width);
    return (u128)load_bits(from, offset, width - 64) << 64 | load_bits(from, offset + width - 64, 64);
}

/* Writes such bits; those around the field stay as they are. */
static inline void store_bits(uint8_t *to, unsigned offset, unsigned width, uint64_t value) {
    uint8_t *first = to + offset / 8;
    unsigned skip = offset % 8, bytes = (skip + width + 7) / 8;
    unsigned drop = bytes * 8 - skip - width;
    if (width == 0) return;
    u128 field = (u128)mask64(width) << drop;
    u128 old = load_be128(first, bytes) & ~field;
    store_be128(first, bytes, old | ((u128)value << drop & field));
}

static inline void store_bits128(uint8_t *to, unsigned offset, unsigned width, u128 value) {
    if (width <= 64) {
        store_bits(to, offset, width, (uint64_t)value);
    } else {
        store_bits(to, offset, width - 64, (uint64_t)(value >> 64));
        store_bits(to, offset + width - 64, 64, (uint64_t)value);
    }
}

/* Shifts by any amount, as defined by P4. */
static inline uint64_t shl64(uint64_t value, uint64_t by, unsigned width) {
    return by >= width ? 0 : value << by & mask64(width);
}
static inline uint64_t shr64(uint64_t value, uint64_t by, unsigned width) { return by >= width ? 0 : value >> by; }
static inline uint64_t sar64(uint64_t value, uint64_t by, unsigned width) {
    if (width == 0) return 0;
    return (uint64_t)(sign64(value, width) >> (by >= width ? width - 1 : by)) & mask64(width);
}
static inline u128 shl128(u128 value, uint64_t by, unsigned width) {
    return by >= width ? 0 : value << by & mask128(width);
}
static inline u128 shr128(u128 value, uint64_t by, unsigned width) { return by >= width ? 0 : value >> by; }
static inline u128 sar128(u128 value, uint64_t by, unsigned width) {
    return (u128)(sign128(value, width) >> (by >= width ? width - 1 : by)) & mask128(width);
}

/* Saturating + and - on bit<width> and int<width>, 1 <= width <= 64 (128: in wide.c by way of bytes). */
static inline uint64_t sat_add64(uint64_t a, uint64_t b, unsigned width) {
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum) || sum > mask64(width)) return mask64(width);
    return sum;
}
static inline uint64_t sat_sub64(uint64_t a, uint64_t b) { return a < b ? 0 : a - b; }
static inline uint64_t sat_clamp64(i128 value, unsigned width) {
    i128 high = (i128)(mask64(width) >> 1), low = -high - 1;
    return (uint64_t)(value > high ? high : value < low ? low : value) & mask64(width);
}
static inline uint64_t sat_add_signed64(uint64_t a, uint64_t b, unsigned width) {
    return sat_clamp64((i128)sign64(a, width) + sign64(b, width), width);
}
static inline uint64_t sat_sub_signed64(uint64_t a, uint64_t b, unsigned width) {
    return sat_clamp64((i128)sign64(a, width) - sign64(b, width), width);
}

#endif
