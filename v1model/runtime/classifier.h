/* Entries with lpm, ternary, optional or range keys: tuple space search over merged tuples.
 *
 * An entry is one or more rules; a rule is a key and a mask. A tuple is a hash table of rules. Its mask
 * has the bits that all of its rules compare; rules with the same bits there form a chain by falling
 * priority. plan.c chooses the masks of tuples so that there are few and chains stay short: rules whose
 * own masks differ share a tuple, as in TupleMerge (Daly et al., ToN 2019). Tuples are tried by falling
 * highest priority, until none can have a better rule than the one found.
 *
 * Some rules are not found in a constant number of steps, because they end in long chains: thousands of
 * masks that have no bit in common, and ranges of which thousands overlap in more than one field. */
#ifndef WEIR_CLASSIFIER_H
#define WEIR_CLASSIFIER_H

#include "hash.h"
#include "program.h"

enum {
    NO_RULE = UINT32_MAX,
    MAX_TUPLES = 128,     /* then rules go to any tuple that takes them */
    CHAIN_LENGTH = 8,     /* a new rule of a longer chain gets a tuple of its own mask, if possible */
    MAX_RULES_PER_ENTRY = 64,
    AHEAD = 8,            /* tuples whose slots are fetched together */
    SHORT_WORDS = 4,      /* keys up to this are compared whole, longer ones only where a mask has bits */
};

struct rule {
    struct tuple *tuple;
    uint32_t next;    /* in its chain, or in the free list */
    uint32_t sibling; /* another rule of the same entry */
    uint32_t entry;
    int32_t priority;
    uint32_t hash; /* of the bits under its tuple's mask */
    bool has_ranges; /* the ranges of its entry are to be compared, too */
    uint64_t words[]; /* key, already masked, then mask */
};

struct slot {
    uint32_t hash, rule; /* NO_RULE: free */
};

/* Open addressing with linear probing; capacities are powers of two. */
struct tuple {
    struct slot *slots;
    uint32_t capacity, used, rules;
    int32_t max_priority;  /* no rule has more */
    uint32_t bits;         /* set in the mask */
    uint32_t active_count; /* words of the mask that are not 0 */
    uint16_t *active;
    uint64_t mask[];
};

struct classifier {
    uint32_t key_words, rule_bytes;
    const uint64_t *seed;
    uint8_t *rules; /* rule_bytes each */
    uint32_t capacity, high_water, free_list, count;
    struct tuple *tuples[MAX_TUPLES + 1]; /* by falling max_priority; one more that takes everything */
    uint32_t tuple_count;
    uint32_t planned_tuples, changes; /* since the tuples were planned */
};

static inline struct rule *classifier_rule(const struct classifier *classifier, uint32_t number) {
    return (struct rule *)(void *)(classifier->rules + (size_t)number * classifier->rule_bytes);
}
static inline uint64_t *rule_mask(const struct classifier *classifier, struct rule *rule) {
    return rule->words + classifier->key_words;
}

void classifier_init(struct classifier *classifier, unsigned key_bytes, const uint64_t seed[2]);
void classifier_clear(struct classifier *classifier);

/* Adds an entry's rules, each as a packed key and mask of key_bytes; returns the first rule, or NO_RULE
 * without memory. `sibling`: the entry's previous rule, or NO_RULE. */
uint32_t classifier_insert(struct classifier *classifier, const uint8_t *key, const uint8_t *mask, unsigned key_bytes,
                           int32_t priority, uint32_t entry, uint32_t sibling, bool has_ranges);
/* Removes a rule and its siblings. */
void classifier_delete(struct classifier *classifier, uint32_t number);

/* In plan.c: writes masks for tuples of the present rules, each key_words long, one behind the other;
 * returns how many, at most `limit`. Some rules may fit none of them. */
uint32_t plan_tuples(const struct classifier *classifier, uint64_t *masks, uint32_t limit);

static inline bool covers(const uint64_t *mask, const uint64_t *wider, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        if (mask[i] & ~wider[i]) return false;
    return true;
}

/* In the functions below `key_words` is the classifier's. Where packets are looked up it is a constant for
 * the compiler, which unrolls the loops over short keys. */
static inline uint32_t tuple_hash(const struct tuple *tuple, const uint64_t *words, uint32_t key_words, const uint64_t *seed) {
    const uint64_t factor = seed[1] ^ UINT64_C(0x9e3779b97f4a7c15);
    uint64_t state = seed[0];
    if (key_words <= SHORT_WORDS) {
        for (uint32_t i = 0; i < key_words; i++) state = hash_mix(state ^ (words[i] & tuple->mask[i]), factor);
    } else {
        for (uint32_t i = 0; i < tuple->active_count; i++) {
            uint32_t word = tuple->active[i];
            state = hash_mix(state ^ (words[word] & tuple->mask[word]), factor);
        }
    }
    return (uint32_t)(state >> 32 ^ state);
}

static inline bool same_bits(const struct tuple *tuple, const uint64_t *a, const uint64_t *b, uint32_t key_words) {
    uint64_t differs = 0;
    if (key_words <= SHORT_WORDS) {
        for (uint32_t i = 0; i < key_words; i++) differs |= (a[i] ^ b[i]) & tuple->mask[i];
    } else {
        for (uint32_t i = 0; i < tuple->active_count; i++) {
            uint32_t word = tuple->active[i];
            differs |= (a[word] ^ b[word]) & tuple->mask[word];
        }
    }
    return !differs;
}

/* Computes the hashes for the tuples from `first` on. Their slots are fetched at once: in a large table
 * each is a miss. */
static inline void tuples_ahead(const struct classifier *classifier, uint32_t first, const uint64_t *words,
                                uint32_t key_words, uint32_t hashes[AHEAD]) {
    for (uint32_t i = 0; i < AHEAD && first + i < classifier->tuple_count; i++) {
        const struct tuple *tuple = classifier->tuples[first + i];
        hashes[i] = tuple_hash(tuple, words, key_words, classifier->seed);
        __builtin_prefetch(&tuple->slots[hashes[i] & (tuple->capacity - 1)]);
    }
}

/* Returns the chain for the bits of `words` under the tuple's mask, or the free slot where it would be. */
static inline struct slot *tuple_slot(const struct classifier *classifier, const struct tuple *tuple,
                                      const uint64_t *words, uint32_t key_words, uint32_t hash) {
    for (uint32_t i = hash;; i++) {
        struct slot *slot = &tuple->slots[i & (tuple->capacity - 1)];
        if (slot->rule == NO_RULE) return slot;
        if (slot->hash != hash) continue;
        if (same_bits(tuple, words, classifier_rule(classifier, slot->rule)->words, key_words)) return slot;
    }
}

static inline bool rule_matches(const struct rule *rule, const uint64_t *words, uint32_t key_words) {
    uint64_t differs = 0;
    for (uint32_t i = 0; i < key_words; i++) differs |= (words[i] & rule->words[key_words + i]) ^ rule->words[i];
    return !differs;
}

#endif
