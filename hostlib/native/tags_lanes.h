/* BLAKE2b of LANES messages side by side, a word of each in a vector; tags.c includes this for each LANES. */
#define JOINED(name, lanes) name##_##lanes
#define NAMED(name, lanes) JOINED(name, lanes)
#define Lanes NAMED(Lanes, LANES)

typedef uint64_t Lanes __attribute__((vector_size(8 * LANES)));

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
static inline __attribute__((always_inline)) void NAMED(compress, LANES)(Lanes state[8], const Lanes words[WORDS],
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

static inline __attribute__((always_inline)) void NAMED(hash, LANES)(const uint64_t *keyed, const Text *const texts[],
                                                                     uint64_t *low, uint64_t *high) {
    size_t head_bytes = texts[0]->head_bytes, hashed_bytes = head_bytes + texts[0]->body_bytes;
    Lanes state[8], words[WORDS];
    for (int i = 0; i < 8; i++) state[i] = (Lanes){0} + keyed[i];
    for (size_t done = 0; done < hashed_bytes; done += BLOCK_BYTES) {
        for (int i = 0; i < WORDS; i++) {
            size_t from = done + 8 * (size_t)i;
            if (from >= hashed_bytes) {
                words[i] = (Lanes){0};
                continue;
            }
            uint64_t gathered[LANES];
            for (int lane = 0; lane < LANES; lane++) {
                const Text *text = texts[lane];
                gathered[lane] = word_at(from < head_bytes ? text->head + from : text->body + (from - head_bytes));
            }
            memcpy(&words[i], gathered, sizeof words[i]);
        }
        int is_last = done + BLOCK_BYTES >= hashed_bytes;
        NAMED(compress, LANES)(state, words, BLOCK_BYTES + (is_last ? hashed_bytes : done + BLOCK_BYTES), is_last);
    }
    memcpy(low, &state[0], sizeof state[0]);
    memcpy(high, &state[1], sizeof state[1]);
}

#undef TURN
#undef MIX
#undef ROUND
#undef Lanes
#undef NAMED
#undef JOINED
