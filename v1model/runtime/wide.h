/* Values of more than 128 bits: big-endian byte arrays of (width + 7) / 8 bytes, as on the wire; the
 * unused upper bits of the first byte are 0. Every function returns its destination, which may be one of
 * its operands. The operands of one call have one width unless the names say otherwise. */
#ifndef WEIR_WIDE_H
#define WEIR_WIDE_H

#include <stdbool.h>

#include "bits.h"

enum { WIDE_MAX_BITS = 65536 };

static inline unsigned wide_bytes(unsigned width) { return (width + 7) / 8; }

/* Conversions. `to` may be wider or narrower than `from`. */
uint8_t *wide_from(uint8_t *to, unsigned to_width, u128 value);
uint8_t *wide_resize(uint8_t *to, unsigned to_width, const uint8_t *from, unsigned from_width, bool sign_extend);
u128 wide_low128(const uint8_t *from, unsigned width);
uint64_t wide_shift_amount(const uint8_t *from, unsigned width); /* UINT64_MAX if it does not fit */

/* Returns from[low + width - 1 : low], for results up to 128 bits and wider ones. */
u128 wide_slice128(const uint8_t *from, unsigned from_width, unsigned low, unsigned width);
uint8_t *wide_slice(uint8_t *to, const uint8_t *from, unsigned from_width, unsigned low, unsigned width);
/* Sets to[low + width - 1 : low] = from; the other bits of `to` stay unchanged. */
uint8_t *wide_insert(uint8_t *to, unsigned to_width, unsigned low, const uint8_t *from, unsigned width);
uint8_t *wide_insert128(uint8_t *to, unsigned to_width, unsigned low, u128 value, unsigned width);

/* Read or write the `width` bits that begin `offset` bits into a packet. */
uint8_t *wide_load(uint8_t *to, const uint8_t *packet, unsigned offset, unsigned width);
void wide_store(uint8_t *packet, unsigned offset, const uint8_t *from, unsigned width);

uint8_t *wide_add(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width);
uint8_t *wide_sub(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width);
uint8_t *wide_mul(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width);
uint8_t *wide_divmod(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width, bool remainder);
uint8_t *wide_sat_add(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width, bool is_signed);
uint8_t *wide_sat_sub(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width, bool is_signed);
uint8_t *wide_and(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width);
uint8_t *wide_or(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width);
uint8_t *wide_xor(uint8_t *to, const uint8_t *a, const uint8_t *b, unsigned width);
uint8_t *wide_not(uint8_t *to, const uint8_t *a, unsigned width);
uint8_t *wide_shl(uint8_t *to, const uint8_t *a, uint64_t by, unsigned width);
uint8_t *wide_shr(uint8_t *to, const uint8_t *a, uint64_t by, unsigned width, bool is_signed);
int wide_compare(const uint8_t *a, const uint8_t *b, unsigned width, bool is_signed);

static inline bool wide_equal(const uint8_t *a, const uint8_t *b, unsigned width) {
    return memcmp(a, b, wide_bytes(width)) == 0;
}
static inline uint8_t *wide_copy(uint8_t *to, const uint8_t *from, unsigned width) {
    return memmove(to, from, wide_bytes(width));
}

#endif
