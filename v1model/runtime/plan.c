/* Choice of the masks for a classifier's tuples.
 *
 * A group of rules is divided as long as the bits that all of them compare would leave chains too long. It
 * is divided on the bit that gives both halves the most bits in common, into the rules that compare it and
 * the others. A sample of the rules decides; the length of chains is estimated from its colliding pairs. */
#include <stdlib.h>

#include "classifier.h"

enum { SAMPLE = 1024, MAX_DEPTH = 6, MAX_BITS_TRIED = 256, GOOD_CHAIN = 4, SMALL_GROUP = 8 };

#define DRAW UINT64_C(0xd1b54a32d192ed03) /* an odd number without pattern, which selects the rules of the sample */

struct plan {
    const struct classifier *classifier;
    uint64_t *masks; /* the result */
    uint32_t count, limit;
    double scale; /* rules for each one in the sample */
};

static uint64_t *mask_of(const struct plan *plan, uint32_t number) {
    return rule_mask(plan->classifier, classifier_rule(plan->classifier, number));
}

static bool has_bit(const uint64_t *mask, uint32_t bit) { return mask[bit / 64] >> (bit % 64) & 1; }

/* Computes the bits that all rules of the group compare, and those that any rule does. */
static void common_bits(const struct plan *plan, const uint32_t *group, uint32_t count, uint64_t *all, uint64_t *any) {
    uint32_t words = plan->classifier->key_words;
    memset(all, 0xff, words * sizeof *all);
    memset(any, 0, words * sizeof *any);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *mask = mask_of(plan, group[i]);
        for (uint32_t w = 0; w < words; w++) {
            all[w] &= mask[w];
            any[w] |= mask[w];
        }
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the estimated length of an average rule's chain in the group, under the mask. */
static double chain_length(const struct plan *plan, const uint32_t *group, uint32_t count, const uint64_t *mask) {
    uint64_t hashes[SAMPLE];
    double pairs = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct rule *rule = classifier_rule(plan->classifier, group[i]);
        uint64_t state = 0;
        for (uint32_t w = 0; w < plan->classifier->key_words; w++)
            state = hash_mix(state ^ (rule->words[w] & mask[w]), UINT64_C(0x9e3779b97f4a7c15) + w);
        hashes[i] = state;
    }
    qsort(hashes, count, sizeof *hashes, by_value);
    for (uint32_t i = 0, run = 0; i < count; i++) {
        run = i && hashes[i] == hashes[i - 1] ? run + 1 : 0;
        pairs += run;
    }
    return count < 2 ? 1 : 1 + pairs / (count * (count - 1) / 2.0) * (count * plan->scale - 1);
}

/* Returns the bits in common, summed over all rules, if the group is divided on `bit`. */
static uint64_t bits_after(const struct plan *plan, const uint32_t *group, uint32_t count, uint32_t bit) {
    uint32_t words = plan->classifier->key_words, size[2] = {0, 0}, bits[2] = {0, 0};
    uint64_t all[2][words];
    memset(all, 0xff, sizeof all);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *mask = mask_of(plan, group[i]);
        bool half = has_bit(mask, bit);
        size[half]++;
        for (uint32_t w = 0; w < words; w++) all[half][w] &= mask[w];
    }
    for (uint32_t w = 0; w < words; w++)
        for (uint32_t half = 0; half < 2; half++) bits[half] += (uint32_t)__builtin_popcountll(all[half][w]);
    return (uint64_t)size[0] * bits[0] + (uint64_t)size[1] * bits[1];
}

/* Finds the best bit to divide on; returns false if all rules compare the same bits. */
static bool best_bit(const struct plan *plan, const uint32_t *group, uint32_t count, const uint64_t *all,
                     const uint64_t *any, uint32_t *bit) {
    uint32_t words = plan->classifier->key_words, candidates = 0, tried = 0;
    uint64_t best = 0;
    for (uint32_t w = 0; w < words; w++) candidates += (uint32_t)__builtin_popcountll(any[w] & ~all[w]);
    uint32_t stride = candidates / MAX_BITS_TRIED + 1;
    for (uint32_t b = 0; b < words * 64; b++) {
        if (!has_bit(any, b) || has_bit(all, b) || tried++ % stride) continue;
        uint64_t bits = bits_after(plan, group, count, b) + 1;
        if (bits > best) {
            best = bits;
            *bit = b;
        }
    }
    return best > 0;
}

static void add_mask(struct plan *plan, const uint64_t *mask) {
    uint32_t words = plan->classifier->key_words;
    size_t bytes = words * sizeof *mask;
    for (uint32_t i = 0; i < plan->count; i++)
        if (memcmp(plan->masks + (size_t)i * words, mask, bytes) == 0) return;
    if (plan->count < plan->limit) memcpy(plan->masks + (size_t)plan->count++ * words, mask, bytes);
}

static void divide(struct plan *plan, uint32_t *group, uint32_t count, unsigned depth) {
    uint32_t words = plan->classifier->key_words, bit, with = 0;
    uint64_t all[words], any[words];
    common_bits(plan, group, count, all, any);
    if (depth == MAX_DEPTH || count * plan->scale <= SMALL_GROUP ||
        chain_length(plan, group, count, all) <= GOOD_CHAIN || !best_bit(plan, group, count, all, any, &bit)) {
        add_mask(plan, all);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!has_bit(mask_of(plan, group[i]), bit)) continue;
        uint32_t moved = group[i];
        group[i] = group[with];
        group[with++] = moved;
    }
    divide(plan, group, with, depth + 1);
    divide(plan, group + with, count - with, depth + 1);
}

uint32_t plan_tuples(const struct classifier *classifier, uint64_t *masks, uint32_t limit) {
    struct plan plan = {.classifier = classifier, .masks = masks, .limit = limit};
    uint32_t sample[SAMPLE], count = 0, stride = classifier->count / SAMPLE + 1;
    for (uint32_t i = 0; i < classifier->high_water; i++)
        if (count < SAMPLE && classifier_rule(classifier, i)->tuple && hash_mix(i + 1, DRAW) % stride == 0)
            sample[count++] = i;
    if (!count) return 0;
    plan.scale = (double)classifier->count / count;
    divide(&plan, sample, count, 0);
    return plan.count;
}
