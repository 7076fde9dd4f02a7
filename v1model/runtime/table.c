/* Tables: entries in one growing array, found by a hash or by a classifier; see table.h. */
#include "table.h"

#include <stdlib.h>

enum { FIRST_ENTRIES = 64, FIRST_SLOTS = 64 };

static bool is_exact(const struct table *table) { return table->spec->match == MATCH_EXACT; }

int table_init(struct table *table, const struct table_spec *spec, const uint64_t seed[2]) {
    *table = (struct table){.spec = spec, .free_list = NO_ENTRY, .seed = {seed[0], seed[1]}};
    size_t bytes = offsetof(struct entry, data) + spec->data_bytes + 2u * spec->key_bytes; /* data is in the last line */
    table->entry_bytes = (uint32_t)whole_lines(bytes);
    classifier_init(&table->classifier, spec->key_bytes, table->seed);
    table->default_entry = aligned_alloc(CACHE_LINE, table->entry_bytes);
    if (!table->default_entry) return -1;
    memset(table->default_entry, 0, table->entry_bytes);
    return 0;
}

void table_clear(struct table *table) {
    free(table->default_entry->meter);
    table->default_entry->meter = NULL;
    table->default_entry->packets = table->default_entry->bytes = 0;
    for (uint32_t i = 0; i < table->high_water; i++) free(table_entry(table, i)->meter);
    classifier_clear(&table->classifier);
    free(table->entries);
    free(table->slots);
    table->entries = NULL;
    table->slots = NULL;
    table->capacity = table->count = table->high_water = table->slot_capacity = 0;
    table->free_list = NO_ENTRY;
}

void table_free(struct table *table) {
    if (!table->default_entry) return;
    table_clear(table);
    free(table->default_entry);
}

static bool grow_entries(struct table *table) {
    uint32_t capacity = table->capacity ? table->capacity * 2 : FIRST_ENTRIES;
    if (capacity > table->spec->size) capacity = table->spec->size;
    uint8_t *entries = aligned_alloc(CACHE_LINE, (size_t)capacity * table->entry_bytes);
    if (!entries) return false;
    if (table->entries) memcpy(entries, table->entries, (size_t)table->high_water * table->entry_bytes);
    free(table->entries);
    table->entries = entries;
    table->capacity = capacity;
    return true;
}

static void give_entry(struct table *table, uint32_t handle) {
    struct entry *entry = table_entry(table, handle);
    free(entry->meter);
    memset(entry, 0, table->entry_bytes);
    entry->next = table->free_list;
    table->free_list = handle;
}

static uint32_t take_entry(struct table *table) {
    uint32_t handle = table->free_list;
    if (table->count >= table->spec->size) return NO_ENTRY;
    if (handle != NO_ENTRY) {
        table->free_list = table_entry(table, handle)->next;
    } else {
        if (table->high_water == table->capacity && !grow_entries(table)) return NO_ENTRY;
        handle = table->high_water++;
    }
    struct entry *entry = table_entry(table, handle);
    memset(entry, 0, table->entry_bytes);
    if (!table->spec->has_direct_meter || (entry->meter = calloc(1, sizeof *entry->meter))) return handle;
    give_entry(table, handle);
    return NO_ENTRY;
}

/* --- the hash table of all entries */

/* Returns the place of a handle with this hash. */
static uint32_t *free_slot(const struct table *table, uint32_t hash) {
    uint32_t i = hash;
    while (table->slots[i & (table->slot_capacity - 1)] != NO_ENTRY) i++;
    return &table->slots[i & (table->slot_capacity - 1)];
}

static bool grow_slots(struct table *table) {
    uint32_t old_capacity = table->slot_capacity, *old = table->slots;
    uint32_t capacity = old_capacity ? old_capacity * 2 : FIRST_SLOTS;
    uint32_t *slots = malloc(capacity * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0xff, capacity * sizeof *slots);
    table->slots = slots;
    table->slot_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i] != NO_ENTRY) *free_slot(table, table_entry(table, old[i])->hash) = old[i];
    free(old);
    return true;
}

static uint32_t identity_hash(const struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority) {
    uint64_t hash = hash_key(key, table->spec->key_bytes, table->seed);
    if (mask) hash = hash_mix(hash ^ (uint32_t)priority, hash_key(mask, table->spec->key_bytes, table->seed) | 1);
    return (uint32_t)hash;
}

uint32_t table_find(const struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority) {
    if (!table->count) return NO_ENTRY;
    uint32_t hash = identity_hash(table, key, mask, priority), bytes = table->spec->key_bytes;
    for (uint32_t i = hash;; i++) {
        uint32_t handle = table->slots[i & (table->slot_capacity - 1)];
        if (handle == NO_ENTRY) return NO_ENTRY;
        struct entry *entry = table_entry(table, handle);
        if (entry->hash != hash || memcmp(entry_key(table, entry), key, bytes) != 0) continue;
        if (!mask || (entry->priority == priority && memcmp(entry_mask(table, entry), mask, bytes) == 0)) return handle;
    }
}

static bool insert_slot(struct table *table, uint32_t handle) {
    if ((table->count + 1) * (uint64_t)2 > table->slot_capacity && !grow_slots(table)) return false;
    *free_slot(table, table_entry(table, handle)->hash) = handle;
    return true;
}

/* Frees a slot, and moves back the slots behind it that were displaced by it. */
static void delete_slot(struct table *table, uint32_t handle) {
    uint32_t last = table->slot_capacity - 1, hole = table_entry(table, handle)->hash & last;
    while (table->slots[hole] != handle) hole = (hole + 1) & last;
    for (uint32_t i = (hole + 1) & last; table->slots[i] != NO_ENTRY; i = (i + 1) & last) {
        uint32_t home = table_entry(table, table->slots[i])->hash & last;
        if (((i - home) & last) < ((i - hole) & last)) continue;
        table->slots[hole] = table->slots[i];
        hole = i;
    }
    table->slots[hole] = NO_ENTRY;
}

/* --- entries */

static bool insert_rules(struct table *table, uint32_t handle) {
    struct entry *entry = table_entry(table, handle);
    if (table->spec->match == MATCH_RANGE)
        entry->rules = insert_ranges(table, handle);
    else
        entry->rules = classifier_insert(&table->classifier, entry_key(table, entry), entry_mask(table, entry),
                                         table->spec->key_bytes, entry->priority, handle, NO_RULE, false);
    return entry->rules != NO_RULE;
}

uint32_t table_insert(struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority) {
    if (table_find(table, key, mask, priority) != NO_ENTRY) return ENTRY_EXISTS;
    uint32_t handle = take_entry(table);
    if (handle == NO_ENTRY) return NO_ENTRY;
    struct entry *entry = table_entry(table, handle);
    memcpy(entry_key(table, entry), key, table->spec->key_bytes);
    if (mask) memcpy(entry_mask(table, entry), mask, table->spec->key_bytes);
    entry->priority = priority;
    entry->hash = identity_hash(table, key, mask, priority);
    if (!insert_slot(table, handle)) {
        give_entry(table, handle);
        return NO_ENTRY;
    }
    if (!is_exact(table) && !insert_rules(table, handle)) {
        delete_slot(table, handle);
        give_entry(table, handle);
        return NO_ENTRY;
    }
    entry->in_use = true;
    table->count++;
    return handle;
}

void table_delete(struct table *table, uint32_t handle) {
    delete_slot(table, handle);
    if (!is_exact(table)) classifier_delete(&table->classifier, table_entry(table, handle)->rules);
    give_entry(table, handle);
    table->count--;
}
