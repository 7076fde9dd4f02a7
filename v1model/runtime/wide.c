/* Schoolbook arithmetic on big-endian byte arrays; see wide.h. */
#include "wide.h"

/* Returns byte i counted from the least significant; beyond the value it is `fill`. */
static inline uint8_t byte_at(const uint8_t *value, unsigned bytes, unsigned i, uint8_t fill) {
    return i < bytes ? value[bytes - 1 - i] : fill;
}

static bool is_negative(const uint8_t *value, unsigned width) {
    return value[0] >> ((width - 1) % 8) & 1;
}

/* Clears the unused bits of the first byte. */
static uint8_t *trim(uint8_t *value, unsigned width) {
    if (width % 8) value[0] &= (uint8_t)(0xff >> (8 - width % 8));
    return value;
}

uint8_t *wide_from(uint8_t *to, unsigned to_width, u128 value) {
    unsigned bytes = wide_bytes(to_width);
    for (unsigned i = bytes; i-- > 0; value >>= 8) to[i] = (uint8_t)value;
    return trim(to, to_width);
}

uint8_t *wide_resize(uint8_t *to, unsigned to_width, const uint8_t *from, unsigned from_width, bool sign_extend) {
    unsigned to_n = wide_bytes(to_width), from_n = wide_bytes(from_width);
    bool negative = sign_extend && is_negative(from, from_width);
    if (to_n <= from_n) {
        memmove(to, from + (from_n - to_n), to_n);
    } else {
        memmove(to + (to_n - from_n), from, from_n);
        memset(to, negative ? 0xff : 0, to_n - from_n);
    }
    if (negative && from_width % 8 && to_n >= from_n) to[to_n - from_n] |= (uint8_t)(0xff << from_width % 8);
    return trim(to, to_width);
}

u128 wide_low128(const uint8_t *from, unsigned width) {
    unsigned bytes = wide_bytes(width);
    return bytes > 16 ? load_be128(from + bytes - 16, 16) : load_be128(from, bytes);
}

uint64_t wide_shift_amount(const uint8_t *from, unsigned width) {
    unsigned bytes = wide_bytes(width);
    for (unsigned i = 0; i + 8 < bytes; i++)
        if (from[i]) return UINT64_MAX;
    return (uint64_t)wide_low128(from, width);
}

u128 wide_slice128(const uint8_t *from, unsigned from_width, unsigned low, unsigned width) {
    unsigned bits = wide_bytes(from_width) * 8;
    return load_bits128(from, bits - low - width, width);
}

uint8_t *wide_load(uint8_t *to, const uint8_t *packet, unsigned offset, unsigned width) {
    unsigned bytes = wide_bytes(width), lead = width % 8 ? width % 8 : 8;
    if ((offset + width) % 8 == 0) {
        memmove(to, packet + (offset + width) / 8 - bytes, bytes);
        return trim(to, width);
    }
    uint8_t first = (uint8_t)load_bits(packet, offset, lead);
    for (unsigned i = 1; i < bytes; i++) to[i] = (uint8_t)load_bits(packet, offset + lead + (i - 1) * 8, 8);
    to[0] = first;
    return to;
}

void wide_store(uint8_t *packet, unsigned offset, const uint8_t *from, unsigned width) {
    unsigned bytes = wide_bytes(width), lead = width % 8 ? width % 8 : 8;
    if (offset % 8 == 0 && width % 8 == 0) {
        memmove(packet + offset / 8, from, bytes);
        return;
    }
    store_bits(packet, offset, lead, from[0]);
    for (unsigned i = 1; i < bytes; i++) store_bits(packet, offset + lead + (i - 1) * 8, 8, from[i]);
}

uint8_t *wide_slice(uint8_t *to, const uint8_t *from, unsigned from_width, unsigned low, unsigned width) {
    return wide_load(to, from, wide_bytes(from_width) * 8 - low - width, width);
}

uint8_t *wide_insert(uint8_t *to, unsigned to_width, unsigned low, const uint8_t *from, unsigned width) {
    wide_store(to, wide_bytes(to_width) * 8 - low - width, from, width);
    return to;
}

uint8_t *wide_insert128(uint8_t *to, unsigned to_width, unsigned low, u128 value, unsigned width) {
    store_bits128(to, wide_bytes(to_width) * 8 - low - width, width, value);
    return to;
}

uint8_t *wide_add(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width) {
    unsigned carry = 0;
    for (unsigned i = wide_bytes(width); i-- > 0; carry >>= 8) {
        carry += (unsigned)a[i] + b[i];
        to[i] = (uint8_t)carry;
    }
    return trim(to, width);
}

uint8_t *wide_sub(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width) {
    int borrow = 0;
    for (unsigned i = wide_bytes(width); i-- > 0;) {
        int difference = a[i] - b[i] - borrow;
        to[i] = (uint8_t)(difference & 0xff);
        borrow = difference < 0;
    }
    return trim(to, width);
}

uint8_t *wide_mul(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width) {
    unsigned bytes = wide_bytes(width);
    uint8_t product[WIDE_MAX_BITS / 8];
    memset(product, 0, bytes);
    for (unsigned i = 0; i < bytes; i++) {
        unsigned factor = byte_at(a, bytes, i, 0), carry = 0;
        for (unsigned j = 0; factor && i + j < bytes; j++, carry >>= 8) {
            uint8_t *digit = &product[bytes - 1 - i - j];
            carry += factor * byte_at(b, bytes, j, 0) + *digit;
            *digit = (uint8_t)carry;
        }
    }
    memcpy(to, product, bytes);
    return trim(to, width);
}

uint8_t *wide_divmod(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width, bool remainder) {
    unsigned bytes = wide_bytes(width);
    uint8_t quotient[WIDE_MAX_BITS / 8 + 1], rest[WIDE_MAX_BITS / 8 + 1], divisor[WIDE_MAX_BITS / 8 + 1];
    memset(quotient, 0, bytes);
    memset(rest, 0, bytes + 1);
    divisor[0] = 0;
    memcpy(divisor + 1, b, bytes);
    bool is_zero = true;
    for (unsigned i = 0; i < bytes; i++) is_zero = is_zero && b[i] == 0;
    for (unsigned bit = bytes * 8; !is_zero && bit-- > 0;) {
        for (unsigned i = 0; i < bytes; i++) rest[i] = (uint8_t)(rest[i] << 1 | rest[i + 1] >> 7);
        rest[bytes] = (uint8_t)(rest[bytes] << 1 | (a[bytes - 1 - bit / 8] >> bit % 8 & 1));
        if (memcmp(rest, divisor, bytes + 1) < 0) continue;
        wide_sub(rest, rest, divisor, (bytes + 1) * 8);
        quotient[bytes - 1 - bit / 8] |= (uint8_t)(1 << bit % 8);
    }
    memcpy(to, remainder ? rest + 1 : quotient, bytes);
    return to;
}

/* Returns the largest (or, if `negative`, the smallest) value of int<width>, or the largest of bit<width>. */
static uint8_t *extreme(uint8_t *to, unsigned width, bool is_signed, bool negative) {
    uint8_t sign = (uint8_t)(1 << (width - 1) % 8);
    memset(to, negative ? 0 : 0xff, wide_bytes(width));
    if (is_signed) to[0] ^= sign;
    return trim(to, width);
}

uint8_t *wide_sat_add(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width, bool is_signed) {
    bool a_negative = is_negative(a, width), b_negative = is_negative(b, width);
    uint8_t sum[WIDE_MAX_BITS / 8];
    wide_add(sum, a, b, width);
    bool overflow = is_signed ? a_negative == b_negative && is_negative(sum, width) != a_negative
                              : memcmp(sum, a, wide_bytes(width)) < 0;
    return overflow ? extreme(to, width, is_signed, is_signed && a_negative) : wide_copy(to, sum, width);
}

uint8_t *wide_sat_sub(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width, bool is_signed) {
    bool a_negative = is_negative(a, width), b_negative = is_negative(b, width);
    uint8_t difference[WIDE_MAX_BITS / 8];
    wide_sub(difference, a, b, width);
    if (!is_signed && memcmp(a, b, wide_bytes(width)) < 0) return wide_from(to, width, 0);
    if (is_signed && a_negative != b_negative && is_negative(difference, width) != a_negative)
        return extreme(to, width, true, a_negative);
    return wide_copy(to, difference, width);
}

uint8_t *wide_and(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width) {
    for (unsigned i = 0; i < wide_bytes(width); i++) to[i] = a[i] & b[i];
    return to;
}

uint8_t *wide_or(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width) {
    for (unsigned i = 0; i < wide_bytes(width); i++) to[i] = a[i] | b[i];
    return to;
}

uint8_t *wide_xor(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width) {
    for (unsigned i = 0; i < wide_bytes(width); i++) to[i] = a[i] ^ b[i];
    return to;
}

uint8_t *wide_not(uint8_t *to, const uint8_t *a, unsigned width) {
    for (unsigned i = 0; i < wide_bytes(width); i++) to[i] = (uint8_t)~a[i];
    return trim(to, width);
}

uint8_t *wide_shl(uint8_t *to, const uint8_t *a, uint64_t by, unsigned width) {
    unsigned bytes = wide_bytes(width);
    if (by >= width) return wide_from(to, width, 0);
    unsigned whole = (unsigned)by / 8, bits = (unsigned)by % 8;
    for (unsigned i = 0; i < bytes; i++) {
        unsigned high = i + whole < bytes ? a[i + whole] : 0, low = i + whole + 1 < bytes ? a[i + whole + 1] : 0;
        to[i] = (uint8_t)((high << 8 | low) << bits >> 8);
    }
    return trim(to, width);
}

uint8_t *wide_shr(uint8_t *to, const uint8_t *a, uint64_t by, unsigned width, bool is_signed) {
    unsigned bytes = wide_bytes(width);
    bool negative = is_signed && is_negative(a, width);
    uint8_t fill = negative ? 0xff : 0, lead = a[0];
    if (by >= width) by = width - 1u + !is_signed;
    if (negative && width % 8) lead |= (uint8_t)(0xff << width % 8);
    unsigned whole = (unsigned)by / 8, bits = (unsigned)by % 8;
    for (unsigned i = bytes; i-- > 0;) {
        unsigned j = i - whole;
        unsigned low = i < whole ? fill : j == 0 ? lead : a[j];
        unsigned high = i < whole + 1 ? fill : j == 1 ? lead : a[j - 1];
        to[i] = (uint8_t)((high << 8 | low) >> bits);
    }
    return trim(to, width);
}

int wide_compare(const uint8_t *a, const uint8_t *b, unsigned width, bool is_signed) {
    bool a_negative = is_negative(a, width), b_negative = is_negative(b, width);
    if (is_signed && a_negative != b_negative) return a_negative ? -1 : 1;
    return memcmp(a, b, wide_bytes(width));
}
