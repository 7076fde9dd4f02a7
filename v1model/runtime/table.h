/* Match-action tables. Keys are packed: every field big-endian in whole bytes, in the table's order. */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include "hash.h"
#include "meter.h"
#include "program.h"

enum { NO_ENTRY = UINT32_MAX };

/* What an entry does: an action with its arguments, or a member or group of the action profile. */
enum target_kind { TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP };

struct entry {
    uint64_t packets, bytes;
    uint64_t last_hit_us, idle_timeout_us;
    uint32_t next;     /* with the same key and mask but a lower priority, or in the free list */
    uint32_t tuple;    /* the mask it belongs to */
    int32_t priority;
    uint32_t hash;
    uint32_t target;   /* handle of a member or group */
    uint16_t action;
    uint8_t kind;      /* enum target_kind */
    bool in_use, idle_reported;
    struct meter *meter; /* configured direct meter, or NULL */
    _Alignas(16) uint8_t data[]; /* action arguments, then key, then mask (or range ends) */
};

/* The entries under one mask. Slots are powers of two, open addressing with linear probing. */
struct tuple {
    uint32_t *slots; /* entry handle or NO_ENTRY: the head of the chain of one key */
    uint32_t capacity, used;
    uint32_t entries;
    int32_t max_priority; /* no entry has more */
    uint8_t *mask;
};

struct table {
    const struct table_spec *spec;
    uint8_t *entries; /* entry_bytes each; handles are indices */
    uint32_t entry_bytes, capacity, count, high_water, free_list;
    uint64_t seed[2];
    struct tuple *tuples; /* by falling max_priority */
    uint32_t tuple_count, tuple_capacity;
    uint32_t *order; /* MATCH_RANGE: handles by falling priority */
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
void table_clear(struct table *table); /* but for the default entry's action */

/* The new entry's handle, or NO_ENTRY when the table is full or memory ran out. The caller knows
 * that no entry has this key, mask and priority. `mask` NULL: MATCH_EXACT. */
uint32_t table_insert(struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority);
void table_delete(struct table *table, uint32_t handle);

struct entry *table_lookup_masked(const struct table *table, const uint8_t *key);
struct entry *table_lookup_range(const struct table *table, const uint8_t *key);

/* `key_bytes` is the table's, as a constant for the compiler. */
static inline struct entry *table_lookup_exact(const struct table *table, const uint8_t *key, unsigned key_bytes) {
    const struct tuple *tuple = table->tuples;
    if (!table->count) return NULL;
    uint32_t hash = (uint32_t)hash_key(key, key_bytes, table->seed);
    for (uint32_t i = hash;; i++) {
        uint32_t handle = tuple->slots[i & (tuple->capacity - 1)];
        if (handle == NO_ENTRY) return NULL;
        struct entry *entry = table_entry(table, handle);
        if (entry->hash == hash && memcmp(entry_key(table, entry), key, key_bytes) == 0) return entry;
    }
}

#endif
