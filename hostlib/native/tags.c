/* Tags: keyed BLAKE2b-128 (RFC 7693) of the 32 bytes of a message that say what its value is of, and of the padded
   value. Four messages are hashed side by side, a word of each in a vector: a hash by itself waits for its own last
   step most of the time. hostlib/seal.py is the reference. */
#include "layout.h"

enum {
    LANES = 4,
    BLOCK_BYTES = 128,
    WORDS = BLOCK_BYTES / 8,
    SEALED_BYTES = AT_TAG - AT_TENANT + VALUE_BYTES,
    ROUNDS = 12,
};

typedef uint64_t Lanes __attribute__((vector_size(8 * LANES)));

static const uint64_t START[8] = {
    0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu, 0xA54FF53A5F1D36F1u,
    0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu, 0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u,
};

static const uint8_t ORDER[ROUNDS][WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

#define TURN(x, bits) ((x) >> (bits) | (x) << (64 - (bits)))
#define MIX(a, b, c, d, one, other)                                                                               \
    a += b + (one), d = TURN(d ^ a, 32), c += d, b = TURN(b ^ c, 24);                                             \
    a += b + (other), d = TURN(d ^ a, 16), c += d, b = TURN(b ^ c, 63)
#define ROUND(r)                                                                                                  \
    MIX(v0, v4, v8, v12, words[ORDER[r][0]], words[ORDER[r][1]]);                                                 \
    MIX(v1, v5, v9, v13, words[ORDER[r][2]], words[ORDER[r][3]]);                                                 \
    MIX(v2, v6, v10, v14, words[ORDER[r][4]], words[ORDER[r][5]]);                                                \
    MIX(v3, v7, v11, v15, words[ORDER[r][6]], words[ORDER[r][7]]);                                                \
    MIX(v0, v5, v10, v15, words[ORDER[r][8]], words[ORDER[r][9]]);                                                \
    MIX(v1, v6, v11, v12, words[ORDER[r][10]], words[ORDER[r][11]]);                                              \
    MIX(v2, v7, v8, v13, words[ORDER[r][12]], words[ORDER[r][13]]);                                               \
    MIX(v3, v4, v9, v14, words[ORDER[r][14]], words[ORDER[r][15]])

/* RFC 7693, 3.2: one block of each message; `counted` bytes so far, this block's included. */
static inline __attribute__((always_inline)) void compress(Lanes state[8], const Lanes words[WORDS],
                                                           uint64_t counted, int is_last) {
    const Lanes zero = {0};
    Lanes v0 = state[0], v1 = state[1], v2 = state[2], v3 = state[3];
    Lanes v4 = state[4], v5 = state[5], v6 = state[6], v7 = state[7];
    Lanes v8 = zero + START[0], v9 = zero + START[1], v10 = zero + START[2], v11 = zero + START[3];
    Lanes v12 = zero + (START[4] ^ counted), v13 = zero + START[5];
    Lanes v14 = zero + (is_last ? ~START[6] : START[6]), v15 = zero + START[7];
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    ROUND(8);
    ROUND(9);
    ROUND(10);
    ROUND(11);
    state[0] ^= v0 ^ v8, state[1] ^= v1 ^ v9, state[2] ^= v2 ^ v10, state[3] ^= v3 ^ v11;
    state[4] ^= v4 ^ v12, state[5] ^= v5 ^ v13, state[6] ^= v6 ^ v14, state[7] ^= v7 ^ v15;
}

/* The sealed bytes of a message begin at its tenant and go on, behind its tag, with its value. */
static inline __attribute__((always_inline)) void hash_four(const uint64_t *keyed, const uint8_t *const messages[],
                                                            uint64_t low[LANES], uint64_t high[LANES]) {
    Lanes state[8], words[WORDS];
    for (int i = 0; i < 8; i++) state[i] = (Lanes){0} + keyed[i];
    for (size_t done = 0; done < SEALED_BYTES; done += BLOCK_BYTES) {
        for (int i = 0; i < WORDS; i++) {
            size_t from = done + 8 * (size_t)i;
            if (from >= SEALED_BYTES) {
                words[i] = (Lanes){0};
                continue;
            }
            from += from < AT_TAG - AT_TENANT ? AT_TENANT : AT_TENANT + TAG_BYTES;
            words[i] = (Lanes){word_at(messages[0] + from), word_at(messages[1] + from),
                               word_at(messages[2] + from), word_at(messages[3] + from)};
        }
        int is_last = done + BLOCK_BYTES >= SEALED_BYTES;
        compress(state, words, BLOCK_BYTES + (is_last ? SEALED_BYTES : done + BLOCK_BYTES), is_last);
    }
    memcpy(low, &state[0], sizeof state[0]);
    memcpy(high, &state[1], sizeof state[1]);
}

typedef void Hash(const uint64_t *keyed, const uint8_t *const messages[], uint64_t low[LANES], uint64_t high[LANES]);

static void hash_plainly(const uint64_t *keyed, const uint8_t *const messages[], uint64_t low[LANES],
                         uint64_t high[LANES]) {
    hash_four(keyed, messages, low, high);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void hash_with_avx2(const uint64_t *keyed, const uint8_t *const messages[],
                                                            uint64_t low[LANES], uint64_t high[LANES]) {
    hash_four(keyed, messages, low, high);
}

__attribute__((target("avx2,avx512f,avx512vl"))) static void hash_with_avx512(
    const uint64_t *keyed, const uint8_t *const messages[], uint64_t low[LANES], uint64_t high[LANES]) {
    hash_four(keyed, messages, low, high);
}
#endif

static Hash *const kinds[] = {
    hash_plainly,
#ifdef __x86_64__
    hash_with_avx2,
    hash_with_avx512,
#endif
};
static int best; /* of them, that this machine has */

int weir_prepare_tags(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) best = __builtin_cpu_supports("avx512vl") ? 2 : 1;
#endif
    return 0;
}

static void hash_all(int kind, const uint8_t *keyed, const uint8_t *const messages[], size_t count,
                     uint8_t (*tags)[TAG_BYTES]) {
    uint64_t start[8];
    memcpy(start, keyed, sizeof start);
    for (size_t at = 0; at < count; at += LANES) {
        const uint8_t *four[LANES];
        uint64_t low[LANES], high[LANES];
        size_t here = count - at < LANES ? count - at : LANES;
        for (size_t i = 0; i < LANES; i++) four[i] = messages[at + (i < here ? i : 0)];
        kinds[kind](start, four, low, high);
        for (size_t i = 0; i < here; i++) {
            uint64_t words[2] = {word_at((const uint8_t *)&low[i]), word_at((const uint8_t *)&high[i])};
            memcpy(tags[at + i], words, TAG_BYTES);
        }
    }
}

void weir_tags(const uint8_t *keyed, const uint8_t *const messages[], size_t count, uint8_t (*tags)[TAG_BYTES]) {
    hash_all(best, keyed, messages, count, tags);
}

/* tag_state(key) -> what the other functions take for it: a hash that has read the key. ValueError */
PyObject *weir_tag_state(PyObject *module, PyObject *key) {
    (void)module;
    if (!PyBytes_CheckExact(key) || PyBytes_GET_SIZE(key) < 1 || PyBytes_GET_SIZE(key) > 64)
        return PyErr_Format(PyExc_ValueError, "a key has 1 to 64 bytes");
    uint8_t block[BLOCK_BYTES] = {0};
    memcpy(block, PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key));
    Lanes state[8], words[WORDS];
    for (int i = 0; i < 8; i++) state[i] = (Lanes){0} + START[i];
    for (int i = 0; i < WORDS; i++) words[i] = (Lanes){0} + word_at(block + 8 * i);
    state[0] ^= (Lanes){0} + (0x01010000u ^ (uint64_t)PyBytes_GET_SIZE(key) << 8 ^ TAG_BYTES);
    compress(state, words, BLOCK_BYTES, 0);
    uint64_t start[8];
    for (int i = 0; i < 8; i++) start[i] = state[i][0];
    return PyBytes_FromStringAndSize((const char *)start, sizeof start);
}

/* tags(state, messages with a value, kind) -> their tags, one behind the other; for tests, by the code for one kind of
   machine: 0 any, 1 and 2 those with AVX2 and AVX-512. ValueError, also for a kind that this machine is not. */
PyObject *weir_tags_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *keyed, *messages;
    int kind = best;
    if (!PyArg_ParseTuple(arguments, "SO!|i", &keyed, &PyList_Type, &messages, &kind)) return NULL;
    if (kind < 0 || kind > best) return PyErr_Format(PyExc_ValueError, "this is no machine of kind %d", kind);
    if (PyBytes_GET_SIZE(keyed) != TAG_STATE_BYTES) return PyErr_Format(PyExc_ValueError, "this is no tag_state");
    Py_ssize_t total = PyList_GET_SIZE(messages);
    PyObject *tags = PyBytes_FromStringAndSize(NULL, total * TAG_BYTES);
    for (Py_ssize_t at = 0; tags != NULL && at < total; at += LANES) {
        const uint8_t *some[LANES];
        size_t count = 0;
        for (; count < LANES && at + (Py_ssize_t)count < total; count++)
            if ((some[count] = message_at(messages, at + (Py_ssize_t)count, MESSAGE_BYTES)) == NULL) {
                Py_DECREF(tags);
                return PyErr_Format(PyExc_ValueError, "a datagram has no value");
            }
        hash_all(kind, (const uint8_t *)PyBytes_AS_STRING(keyed), some, count,
                 (uint8_t(*)[TAG_BYTES])(PyBytes_AS_STRING(tags) + at * TAG_BYTES));
    }
    return tags;
}
