/* Inner loop of the fuzzer, which injects mutated seeds into the switch. Linked into sanitized builds
 * only. */
#include "api.h"
#include "switch.h"

enum { MAX_SEED_BYTES = 4096, HAVOC = 8 };

struct mutator {
    uint64_t state;
    uint8_t frame[MAX_SEED_BYTES];
    uint32_t length;
};

static uint64_t draw(struct mutator *m, uint64_t below) {
    m->state ^= m->state >> 12;
    m->state ^= m->state << 25;
    m->state ^= m->state >> 27;
    return m->state * UINT64_C(0x2545f4914f6cdd1d) % (below ? below : 1);
}

static void random_bytes(struct mutator *m, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) m->frame[i] = (uint8_t)draw(m, 256);
}

static void mutate_once(struct mutator *m) {
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
    uint32_t at = (uint32_t)draw(m, m->length), longer;
    if (!m->length) return;
    switch (draw(m, 6)) {
    case 0: m->frame[at] ^= (uint8_t)(1 << draw(m, 8)); break;
    case 1: m->frame[at] = edges[draw(m, sizeof edges)]; break;
    case 2: m->frame[at] = (uint8_t)draw(m, 256); break;
    case 3: m->length = at; break;
    case 4:
        longer = m->length + (uint32_t)draw(m, 64);
        if (longer > MAX_SEED_BYTES) longer = MAX_SEED_BYTES;
        random_bytes(m, m->length, longer);
        m->length = longer;
        break;
    default: random_bytes(m, at, m->length); break;
    }
}

static void choose(struct mutator *m, const uint8_t *seeds, const uint32_t *lengths, uint32_t count) {
    uint32_t number = (uint32_t)draw(m, count);
    for (uint32_t i = 0; i < number; i++) seeds += lengths[i];
    m->length = lengths[number];
    memcpy(m->frame, seeds, m->length);
}

/* Injects `packets` frames: one in four as it is, the others mutated up to HAVOC times. `seeds` are the
 * frames one behind the other, each at most MAX_SEED_BYTES. Returns how many the switch took. */
WEIR_API uint64_t weir_fuzz(struct vswitch *sw, const uint8_t *seeds, const uint32_t *lengths, uint32_t count,
                            uint64_t packets, uint64_t seed) {
    struct mutator m = {.state = seed | 1};
    const uint8_t *records;
    uint64_t taken = 0;
    for (uint64_t i = 0; i < packets; i++) {
        choose(&m, seeds, lengths, count);
        for (uint64_t rounds = draw(&m, 4) ? draw(&m, HAVOC) : 0; rounds > 0; rounds--) mutate_once(&m);
        taken += weir_inject(sw, (uint32_t)draw(&m, PORTS), m.frame, m.length, i) == 0;
        weir_take_outputs(sw, &records);
        if (i % 1024 == 0) weir_wait_events(sw, 0, 1, &records);
    }
    return taken;
}
