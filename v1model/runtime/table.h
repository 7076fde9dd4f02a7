/* Match-action tables. Keys are packed: every field big-endian in whole bytes, in the table's order. */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include "classifier.h"
#include "meter.h"
#include "program.h"

enum { NO_ENTRY = UINT32_MAX, ENTRY_EXISTS = UINT32_MAX - 1 };

/* Kinds of an entry's target: an action with its arguments, or a member or group of the action profile. */
enum target_kind { TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP };

/* Entry at the beginning of a cache line. A lookup reads from the hash to the key, which is behind the
 * first line: usually all in the second. */
struct entry {
    uint64_t packets, bytes;
    uint64_t last_hit_us, idle_timeout_us, reported_us; /* when it was last reported as idle */
    struct meter *meter; /* the direct meter, where the table has one; the default entry's only once configured */
    int32_t priority;
    union {
        uint32_t rules; /* except for MATCH_EXACT: the first of its rules in the classifier */
        uint32_t next;  /* not in use: in the free list */
    };
    bool in_use;
    bool plain; /* nothing else is stored of it outside this table; see write.h */
    _Alignas(CACHE_LINE) uint32_t hash; /* of its identity: the key; with masks also mask and priority */
    uint32_t target;   /* handle of a member or group */
    uint16_t action;
    uint8_t kind;      /* enum target_kind */
    _Alignas(16) uint8_t data[]; /* action arguments, then key, then mask (or range ends) */
};

struct table {
    const struct table_spec *spec;
    uint8_t *entries; /* entry_bytes each; handles are indices */
    uint32_t entry_bytes, capacity, count, high_water, free_list;
    uint64_t seed[2];
    uint32_t *slots; /* handles by hash, or NO_ENTRY; a power of two, open addressing, linear probing */
    uint32_t slot_capacity;
    struct classifier classifier; /* finds the entries of a packet, except for MATCH_EXACT */
    struct entry *default_entry;
};

static inline struct entry *table_entry(const struct table *table, uint32_t handle) {
    return (struct entry *)(void *)(table->entries + (size_t)handle * table->entry_bytes);
}
static inline uint8_t *entry_key(const struct table *table, struct entry *entry) {
    return entry->data + table->spec->data_bytes;
}
static inline uint8_t *entry_mask(const struct table *table, struct entry *entry) {
    return entry_key(table, entry) + table->spec->key_bytes;
}

int table_init(struct table *table, const struct table_spec *spec, const uint64_t seed[2]);
void table_free(struct table *table);
void table_clear(struct table *table); /* except for the default entry's action */

/* In keys, `mask` NULL is for MATCH_EXACT. With MATCH_RANGE, fields with ranges have the lower end in the
 * key and the upper end in the mask. */
/* Returns the entry with exactly this key, mask and priority, or NO_ENTRY. */
uint32_t table_find(const struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority);
/* Returns the new entry's handle; ENTRY_EXISTS, or NO_ENTRY when the table is full or there is no memory. */
uint32_t table_insert(struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority);
void table_delete(struct table *table, uint32_t handle);

/* In ranges.c: gives the classifier the entry's rules; returns the last one, or NO_RULE without memory. */
uint32_t insert_ranges(struct table *table, uint32_t handle);
bool ranges_match(const struct table *table, uint32_t handle, const uint8_t *key);

/* In the lookups `key_bytes` is the table's, as a constant for the compiler. */
static inline struct entry *table_lookup_exact(const struct table *table, const uint8_t *key, unsigned key_bytes) {
    if (!table->count) return NULL;
    uint32_t hash = (uint32_t)hash_key(key, key_bytes, table->seed);
    for (uint32_t i = hash;; i++) {
        uint32_t handle = table->slots[i & (table->slot_capacity - 1)];
        if (handle == NO_ENTRY) return NULL;
        struct entry *entry = table_entry(table, handle);
        if (entry->hash == hash && memcmp(entry_key(table, entry), key, key_bytes) == 0) return entry;
    }
}

/* Fetches the first rules of the chains, and their entries, together, because each may be a cache miss.
 * Rules and entries have the same numbers as long as each entry has one rule; otherwise a line is fetched
 * in vain. */
static inline void rules_ahead(const struct table *table, uint32_t first, const uint32_t hashes[AHEAD]) {
    const struct classifier *classifier = &table->classifier;
    for (uint32_t i = 0; i < AHEAD && first + i < classifier->tuple_count; i++) {
        const struct tuple *tuple = classifier->tuples[first + i];
        const struct slot *slot = &tuple->slots[hashes[i] & (tuple->capacity - 1)];
        if (slot->rule == NO_RULE || slot->hash != hashes[i]) continue;
        __builtin_prefetch(classifier_rule(classifier, slot->rule));
        __builtin_prefetch(&table_entry(table, slot->rule)->hash);
    }
}

/* Returns an entry with the highest priority of those that match. */
static inline __attribute__((always_inline)) struct entry *table_lookup_best(const struct table *table, const uint8_t *key,
                                                                             unsigned key_bytes) {
    const struct classifier *classifier = &table->classifier;
    const struct rule *best = NULL;
    const uint32_t key_words = (key_bytes + 7) / 8;
    uint64_t words[key_words];
    words[key_words - 1] = 0;
    memcpy(words, key, key_bytes);
    uint32_t hashes[AHEAD];
    for (uint32_t t = 0; t < classifier->tuple_count; t++) {
        const struct tuple *tuple = classifier->tuples[t];
        if (best && best->priority >= tuple->max_priority) break;
        if (t % AHEAD == 0) {
            tuples_ahead(classifier, t, words, key_words, hashes);
            rules_ahead(table, t, hashes);
        }
        uint32_t number = tuple_slot(classifier, tuple, words, key_words, hashes[t % AHEAD])->rule;
        while (number != NO_RULE) {
            const struct rule *rule = classifier_rule(classifier, number);
            if (best && best->priority >= rule->priority) break;
            if (rule_matches(rule, words, key_words) && (!rule->has_ranges || ranges_match(table, rule->entry, key))) {
                best = rule;
                break;
            }
            number = rule->next;
        }
    }
    return best ? table_entry(table, best->entry) : NULL;
}

/* Defines one lookup for all tables of a program with keys of this length. */
#define LOOKUP_BEST(BYTES)                                                                                                    \
    static __attribute__((noinline)) struct entry *table_lookup_best_##BYTES(const struct table *table, const uint8_t *key) { \
        return table_lookup_best(table, key, BYTES);                                                                          \
    }

#endif
