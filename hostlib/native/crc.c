/* The checksum of messages: CRC-32 as zlib has it. */
#include "layout.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Sixteen bytes a step: crc_tables[n][byte] is what a byte makes of it n bytes later. */
enum { STEP = 16 };
static uint32_t crc_tables[STEP][256];

#ifdef __x86_64__
static int folds;

/* The remainder of many bytes, folded 16 at a time with multiplications without carries (Gopal and others, "Fast CRC
   computation for generic polynomials using PCLMULQDQ", Intel 2009): `length` is a multiple of 16, at least 64. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t fold(const uint8_t *data, size_t length, uint32_t crc) {
    const __m128i by_four = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
    const __m128i by_one = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
    const __m128i by_half = _mm_set_epi64x(0, 0x163CD6124), divisor = _mm_set_epi64x(0x1F7011641, 0x1DB710641);
    const __m128i low_words = _mm_setr_epi32(-1, 0, -1, 0);
    __m128i parts[4];
    for (int i = 0; i < 4; i++) parts[i] = _mm_loadu_si128((const __m128i *)data + i);
    parts[0] = _mm_xor_si128(parts[0], _mm_cvtsi32_si128((int)crc));
    for (data += 64, length -= 64; length >= 64; data += 64, length -= 64)
        for (int i = 0; i < 4; i++) {
            __m128i low = _mm_clmulepi64_si128(parts[i], by_four, 0x00);
            __m128i high = _mm_clmulepi64_si128(parts[i], by_four, 0x11);
            parts[i] = _mm_xor_si128(_mm_xor_si128(low, high), _mm_loadu_si128((const __m128i *)data + i));
        }
    __m128i one = parts[0];
    for (int i = 1; i < 4 || length >= 16; i++) {
        __m128i next = i < 4 ? parts[i] : _mm_loadu_si128((const __m128i *)data);
        if (i >= 4) data += 16, length -= 16;
        __m128i low = _mm_clmulepi64_si128(one, by_one, 0x00), high = _mm_clmulepi64_si128(one, by_one, 0x11);
        one = _mm_xor_si128(_mm_xor_si128(low, high), next);
    }
    one = _mm_xor_si128(_mm_srli_si128(one, 8), _mm_clmulepi64_si128(one, by_one, 0x10));
    __m128i rest = _mm_srli_si128(one, 4);
    one = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(one, low_words), by_half, 0x00), rest);
    rest = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(one, low_words), divisor, 0x10), low_words);
    one = _mm_xor_si128(one, _mm_clmulepi64_si128(rest, divisor, 0x00));
    return (uint32_t)_mm_extract_epi32(one, 1);
}
#endif

int weir_prepare_crc(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        crc_tables[0][i] = value;
    }
    for (int table = 1; table < STEP; table++)
        for (int i = 0; i < 256; i++) {
            uint32_t before = crc_tables[table - 1][i];
            crc_tables[table][i] = before >> 8 ^ crc_tables[0][before & 0xFF];
        }
#ifdef __x86_64__
    __builtin_cpu_init();
    folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
    return 0;
}

static inline uint32_t four_bytes(const uint8_t *at, uint32_t crc, int later) {
    return crc_tables[later + 3][(crc ^ at[0]) & 0xFF] ^ crc_tables[later + 2][(crc >> 8 ^ at[1]) & 0xFF] ^
           crc_tables[later + 1][(crc >> 16 ^ at[2]) & 0xFF] ^ crc_tables[later][(crc >> 24 ^ at[3]) & 0xFF];
}

static uint32_t by_tables(const uint8_t *data, size_t length, uint32_t crc) {
    for (; length >= STEP; data += STEP, length -= STEP)
        crc = four_bytes(data, crc, 12) ^ four_bytes(data + 4, 0, 8) ^ four_bytes(data + 8, 0, 4) ^
              four_bytes(data + 12, 0, 0);
    for (; length > 0; data++, length--) crc = crc >> 8 ^ crc_tables[0][(crc ^ *data) & 0xFF];
    return crc;
}

uint32_t weir_crc32(const uint8_t *data, size_t length) {
    uint32_t crc = 0xFFFFFFFFu;
#ifdef __x86_64__
    if (folds && length >= 64) {
        size_t whole = length & ~(size_t)15;
        crc = fold(data, whole, crc);
        data += whole;
        length -= whole;
    }
#endif
    return ~by_tables(data, length, crc);
}

/* crc32(data) -> as zlib's; crc32(data, True): as on a machine that can't fold */
PyObject *weir_crc32_of(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_buffer view;
    int plainly = 0;
    if (!PyArg_ParseTuple(arguments, "y*|p", &view, &plainly)) return NULL;
    uint32_t crc = plainly ? ~by_tables(view.buf, (size_t)view.len, 0xFFFFFFFFu)
                           : weir_crc32(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
}
