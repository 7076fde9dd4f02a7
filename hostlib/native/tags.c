/* Tags: keyed BLAKE2b-128 (RFC 7693) of the 32 bytes of a message that say what its value is of, and of the value,
   with zeros behind it up to LEAF_BYTES; of a longer value, of the hashes of its leaves, which are pieces of
   LEAF_BYTES. Messages and leaves are hashed side by side, a word of each in a vector: a hash by itself waits for its
   own last step most of the time. hostlib/protocol/seal.py is the reference. */
#include "layout.h"

enum {
    MOST_LANES_HASHED = 8,
    BLOCK_BYTES = 128,
    WORDS = BLOCK_BYTES / 8,
    PLACE_BYTES = AT_TAG - AT_TENANT,
    LEAF_BYTES = 512,
    MOST_LEAVES = (VALUE_BYTES + LEAF_BYTES - 1) / LEAF_BYTES,
    HASH_STATE_BYTES = TAG_STATE_BYTES / 2,
    ROUNDS = 12,
};

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

/* What is hashed: some bytes, perhaps none, and then others. Side by side go those of the same two lengths. The last
   word may go beyond the end, where zeros have to be. */
typedef struct {
    const uint8_t *head, *body;
    size_t head_bytes, body_bytes;
} Text;

#define LANES 4
#include "tags_lanes.h"
#undef LANES
#define LANES 8
#include "tags_lanes.h"
#undef LANES

typedef void Hash(const uint64_t *keyed, const Text *const texts[], uint64_t *low, uint64_t *high);

static void hash_plainly(const uint64_t *keyed, const Text *const texts[], uint64_t *low, uint64_t *high) {
    hash_4(keyed, texts, low, high);
}

#ifdef __x86_64__
#define FOR(instructions) __attribute__((target(instructions)))

FOR("avx2")
static void hash_avx2(const uint64_t *keyed, const Text *const texts[], uint64_t *low, uint64_t *high) {
    hash_4(keyed, texts, low, high);
}

FOR("avx2,avx512f,avx512vl")
static void hash_avx512(const uint64_t *keyed, const Text *const texts[], uint64_t *low, uint64_t *high) {
    hash_8(keyed, texts, low, high);
}
#endif

static const struct {
    Hash *hash;
    size_t lanes;
} kinds[] = {
    {hash_plainly, 4},
#ifdef __x86_64__
    {hash_avx2, 4},
    {hash_avx512, 8},
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

/* The tag of a first fragment: a hash of the keyed one, which stays the writer's proof (hostlib/protocol/seal.py, closed). */
static void close_tag(uint8_t *tag) {
    uint8_t block[BLOCK_BYTES] = {0};
    static const uint8_t person[TAG_BYTES] = "weir proof";
    memcpy(block, tag, TAG_BYTES);
    Lanes_4 state[8], words[WORDS];
    for (int i = 0; i < 8; i++) state[i] = (Lanes_4){0} + START[i];
    for (int i = 0; i < WORDS; i++) words[i] = (Lanes_4){0} + word_at(block + 8 * i);
    state[0] ^= (Lanes_4){0} + (0x01010000u ^ TAG_BYTES);
    state[6] ^= (Lanes_4){0} + word_at(person);
    state[7] ^= (Lanes_4){0} + word_at(person + 8);
    compress_4(state, words, TAG_BYTES, 1);
    uint64_t made[2] = {state[0][0], state[1][0]};
    uint64_t ordered[2] = {word_at((const uint8_t *)&made[0]), word_at((const uint8_t *)&made[1])};
    memcpy(tag, ordered, TAG_BYTES);
}

static void hash_all(int kind, const uint8_t *keyed, const Text texts[], size_t count, uint8_t (*hashes)[TAG_BYTES]) {
    uint64_t start[8];
    memcpy(start, keyed, sizeof start);
    size_t lanes = kinds[kind].lanes;
    for (size_t at = 0, here; at < count; at += here) {
        const Text *side_by_side[MOST_LANES_HASHED], *first = &texts[at];
        uint64_t low[MOST_LANES_HASHED], high[MOST_LANES_HASHED];
        for (here = 1; here < lanes && at + here < count; here++)
            if (first[here].body_bytes != first->body_bytes || first[here].head_bytes != first->head_bytes) break;
        for (size_t i = 0; i < lanes; i++) side_by_side[i] = &first[i < here ? i : 0];
        kinds[kind].hash(start, side_by_side, low, high);
        for (size_t i = 0; i < here; i++) {
            uint64_t words[2] = {word_at((const uint8_t *)&low[i]), word_at((const uint8_t *)&high[i])};
            memcpy(hashes[at + i], words, TAG_BYTES);
        }
    }
}

/* Hash the leaves of a value that is longer than one; how many there are. */
static size_t hash_leaves(int kind, const uint8_t *keyed, const uint8_t *value, size_t value_bytes,
                          uint8_t (*leaves)[TAG_BYTES]) {
    Text pieces[MOST_LEAVES];
    size_t count = 0;
    for (size_t at = 0; at < value_bytes; at += LEAF_BYTES) {
        size_t left = value_bytes - at, bytes = left < LEAF_BYTES ? left : LEAF_BYTES;
        pieces[count++] = (Text){value + at, value + at, 0, bytes};
    }
    hash_all(kind, keyed + HASH_STATE_BYTES, pieces, count, leaves);
    return count;
}

static void tag_all(int kind, const uint8_t *keyed, const uint8_t *const messages[], size_t count,
                    uint8_t (*tags)[TAG_BYTES]) {
    static uint8_t leaves[MOST_LANES_HASHED][MOST_LEAVES][TAG_BYTES]; /* the interpreter's lock is held */
    for (size_t at = 0; at < count; at += MOST_LANES_HASHED) {
        Text texts[MOST_LANES_HASHED];
        size_t here = count - at < MOST_LANES_HASHED ? count - at : MOST_LANES_HASHED;
        for (size_t i = 0; i < here; i++) {
            const uint8_t *message = messages[at + i], *value = message + HEADER_BYTES;
            size_t value_bytes = load16(message + AT_VALUE_BYTES);
            texts[i] = (Text){message + AT_TENANT, value, PLACE_BYTES, LEAF_BYTES};
            if (value_bytes <= LEAF_BYTES) continue;
            texts[i].body = (const uint8_t *)leaves[i];
            texts[i].body_bytes = TAG_BYTES * hash_leaves(kind, keyed, value, value_bytes, leaves[i]);
        }
        hash_all(kind, keyed, texts, here, tags + at);
        for (size_t i = 0; i < here; i++)
            if (load16(messages[at + i] + AT_FRAGMENT) == 0) close_tag(tags[at + i]);
    }
}

void weir_tags(const uint8_t *keyed, const uint8_t *const messages[], size_t count, uint8_t (*tags)[TAG_BYTES]) {
    tag_all(best, keyed, messages, count, tags);
}

/* A hash, for whom the 16 bytes of `person` say what it is for, when it has read the key. */
static void read_key(const uint8_t *key, size_t key_bytes, const uint8_t *person, uint8_t *state_bytes) {
    uint8_t block[BLOCK_BYTES] = {0};
    memcpy(block, key, key_bytes);
    Lanes_4 state[8], words[WORDS];
    for (int i = 0; i < 8; i++) state[i] = (Lanes_4){0} + START[i];
    for (int i = 0; i < WORDS; i++) words[i] = (Lanes_4){0} + word_at(block + 8 * i);
    state[0] ^= (Lanes_4){0} + (0x01010000u ^ (uint64_t)key_bytes << 8 ^ TAG_BYTES);
    state[6] ^= (Lanes_4){0} + word_at(person);
    state[7] ^= (Lanes_4){0} + word_at(person + 8);
    compress_4(state, words, BLOCK_BYTES, 0);
    for (int i = 0; i < 8; i++) {
        uint64_t word = state[i][0];
        memcpy(state_bytes + 8 * i, &word, sizeof word);
    }
}

/* tag_state(key) -> what the other functions take for it: hashes that have read the key. ValueError */
PyObject *weir_tag_state(PyObject *module, PyObject *key) {
    (void)module;
    if (!PyBytes_CheckExact(key) || PyBytes_GET_SIZE(key) < 1 || PyBytes_GET_SIZE(key) > 64)
        return PyErr_Format(PyExc_ValueError, "a key has 1 to 64 bytes");
    static const uint8_t of_messages[16], of_leaves[16] = "weir leaf";
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(key);
    uint8_t states[TAG_STATE_BYTES];
    read_key(bytes, (size_t)PyBytes_GET_SIZE(key), of_messages, states);
    read_key(bytes, (size_t)PyBytes_GET_SIZE(key), of_leaves, states + HASH_STATE_BYTES);
    return PyBytes_FromStringAndSize((const char *)states, sizeof states);
}

/* tags(state, messages with a value, kind) -> their tags, one behind the other; for tests, by the code for one kind
   of machine: 0 any, 1 and 2 those with AVX2 and AVX-512. ValueError, also for a kind that this machine is not. */
PyObject *weir_tags_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *keyed, *messages;
    int kind = best;
    if (!PyArg_ParseTuple(arguments, "SO!|i", &keyed, &PyList_Type, &messages, &kind)) return NULL;
    if (kind < 0 || kind > best) return PyErr_Format(PyExc_ValueError, "this is no machine of kind %d", kind);
    if (PyBytes_GET_SIZE(keyed) != TAG_STATE_BYTES) return PyErr_Format(PyExc_ValueError, "this is no tag_state");
    Py_ssize_t total = PyList_GET_SIZE(messages);
    PyObject *tags = PyBytes_FromStringAndSize(NULL, total * TAG_BYTES);
    for (Py_ssize_t at = 0; tags != NULL && at < total; at += MOST_LANES_HASHED) {
        const uint8_t *some[MOST_LANES_HASHED];
        size_t count = 0;
        for (; count < MOST_LANES_HASHED && at + (Py_ssize_t)count < total; count++)
            if ((some[count] = message_at(messages, at + (Py_ssize_t)count, MESSAGE_BYTES)) == NULL) {
                Py_DECREF(tags);
                return PyErr_Format(PyExc_ValueError, "a datagram has no value");
            }
        tag_all(kind, (const uint8_t *)PyBytes_AS_STRING(keyed), some, count,
                (uint8_t(*)[TAG_BYTES])(PyBytes_AS_STRING(tags) + at * TAG_BYTES));
    }
    return tags;
}
