/* Tables: entries in one growing array, found through one hash table per mask; see table.h. */
#include "table.h"

#include <stdlib.h>

enum { FIRST_ENTRIES = 64, FIRST_SLOTS = 64 };

static bool is_chained(const struct table *table) { return table->spec->match != MATCH_RANGE; }

int table_init(struct table *table, const struct table_spec *spec, const uint64_t seed[2]) {
    *table = (struct table){.spec = spec, .free_list = NO_ENTRY, .seed = {seed[0], seed[1]}};
    size_t bytes = sizeof(struct entry) + spec->data_bytes + 2u * spec->key_bytes;
    table->entry_bytes = (uint32_t)((bytes + 15) & ~(size_t)15);
    table->default_entry = aligned_alloc(16, table->entry_bytes);
    if (!table->default_entry) return -1;
    memset(table->default_entry, 0, table->entry_bytes);
    return 0;
}

void table_clear(struct table *table) {
    free(table->default_entry->meter);
    table->default_entry->meter = NULL;
    table->default_entry->packets = table->default_entry->bytes = 0;
    for (uint32_t i = 0; i < table->high_water; i++) free(table_entry(table, i)->meter);
    for (uint32_t i = 0; i < table->tuple_count; i++) {
        free(table->tuples[i].slots);
        free(table->tuples[i].mask);
    }
    free(table->entries);
    free(table->tuples);
    free(table->order);
    table->entries = NULL;
    table->tuples = NULL;
    table->order = NULL;
    table->capacity = table->count = table->high_water = table->tuple_count = table->tuple_capacity = 0;
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
    uint8_t *entries = aligned_alloc(16, (size_t)capacity * table->entry_bytes);
    uint32_t *order = realloc(table->order, capacity * sizeof *order);
    if (order) table->order = order;
    if (!entries || !order) {
        free(entries);
        return false;
    }
    if (table->entries) memcpy(entries, table->entries, (size_t)table->high_water * table->entry_bytes);
    free(table->entries);
    table->entries = entries;
    table->capacity = capacity;
    return true;
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
    memset(table_entry(table, handle), 0, table->entry_bytes);
    return handle;
}

static void give_entry(struct table *table, uint32_t handle) {
    struct entry *entry = table_entry(table, handle);
    free(entry->meter);
    memset(entry, 0, table->entry_bytes);
    entry->next = table->free_list;
    table->free_list = handle;
}

/* The slot that holds the chain for `key`, or the free one where it would go. */
static uint32_t *find_slot(const struct table *table, const struct tuple *tuple, const uint8_t *key, uint32_t hash) {
    for (uint32_t i = hash;; i++) {
        uint32_t *slot = &tuple->slots[i & (tuple->capacity - 1)];
        if (*slot == NO_ENTRY) return slot;
        struct entry *entry = table_entry(table, *slot);
        if (entry->hash == hash && memcmp(entry_key(table, entry), key, table->spec->key_bytes) == 0) return slot;
    }
}

static bool grow_slots(const struct table *table, struct tuple *tuple) {
    struct tuple old = *tuple;
    tuple->capacity = old.capacity ? old.capacity * 2 : FIRST_SLOTS;
    tuple->slots = malloc(tuple->capacity * sizeof *tuple->slots);
    if (!tuple->slots) {
        *tuple = old;
        return false;
    }
    memset(tuple->slots, 0xff, tuple->capacity * sizeof *tuple->slots);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i] == NO_ENTRY) continue;
        struct entry *entry = table_entry(table, old.slots[i]);
        *find_slot(table, tuple, entry_key(table, entry), entry->hash) = old.slots[i];
    }
    free(old.slots);
    return true;
}

static struct tuple *add_tuple(struct table *table, const uint8_t *mask) {
    if (table->tuple_count == table->tuple_capacity) {
        uint32_t capacity = table->tuple_capacity ? table->tuple_capacity * 2 : 8;
        struct tuple *tuples = realloc(table->tuples, capacity * sizeof *tuples);
        if (!tuples) return NULL;
        table->tuples = tuples;
        table->tuple_capacity = capacity;
    }
    struct tuple *tuple = &table->tuples[table->tuple_count];
    *tuple = (struct tuple){.mask = malloc(table->spec->key_bytes ? table->spec->key_bytes : 1), .max_priority = INT32_MIN};
    if (!tuple->mask) return NULL;
    if (mask)
        memcpy(tuple->mask, mask, table->spec->key_bytes);
    else
        memset(tuple->mask, 0xff, table->spec->key_bytes);
    table->tuple_count++;
    return tuple;
}

static struct tuple *find_tuple(struct table *table, const uint8_t *mask) {
    for (uint32_t i = 0; i < table->tuple_count; i++)
        if (!mask || memcmp(table->tuples[i].mask, mask, table->spec->key_bytes) == 0) return &table->tuples[i];
    return add_tuple(table, mask);
}

/* Moves tuples[index] to its place by falling max_priority; entries name their tuple by its mask. */
static void sort_tuple(struct table *table, uint32_t index) {
    struct tuple moved = table->tuples[index];
    for (; index > 0 && table->tuples[index - 1].max_priority < moved.max_priority; index--)
        table->tuples[index] = table->tuples[index - 1];
    for (; index + 1 < table->tuple_count && table->tuples[index + 1].max_priority > moved.max_priority; index++)
        table->tuples[index] = table->tuples[index + 1];
    table->tuples[index] = moved;
}

static void drop_tuple(struct table *table, struct tuple *tuple) {
    free(tuple->slots);
    free(tuple->mask);
    for (uint32_t i = (uint32_t)(tuple - table->tuples); i + 1 < table->tuple_count; i++)
        table->tuples[i] = table->tuples[i + 1];
    table->tuple_count--;
}

static bool insert_chained(struct table *table, uint32_t handle, const uint8_t *mask) {
    struct entry *entry = table_entry(table, handle);
    struct tuple *tuple = find_tuple(table, mask);
    if (!tuple) return false;
    if ((tuple->used + 1) * 2 > tuple->capacity && !grow_slots(table, tuple)) {
        if (!tuple->entries) drop_tuple(table, tuple);
        return false;
    }
    uint32_t *slot = find_slot(table, tuple, entry_key(table, entry), entry->hash);
    if (*slot == NO_ENTRY) tuple->used++;
    while (*slot != NO_ENTRY && table_entry(table, *slot)->priority >= entry->priority)
        slot = &table_entry(table, *slot)->next;
    entry->next = *slot;
    *slot = handle;
    tuple->entries++;
    if (entry->priority > tuple->max_priority) {
        tuple->max_priority = entry->priority;
        sort_tuple(table, (uint32_t)(tuple - table->tuples));
    }
    return true;
}

static void insert_ordered(struct table *table, uint32_t handle) {
    uint32_t at = table->count;
    int32_t priority = table_entry(table, handle)->priority;
    for (; at > 0 && table_entry(table, table->order[at - 1])->priority < priority; at--)
        table->order[at] = table->order[at - 1];
    table->order[at] = handle;
}

uint32_t table_insert(struct table *table, const uint8_t *key, const uint8_t *mask, int32_t priority) {
    uint32_t handle = take_entry(table);
    if (handle == NO_ENTRY) return NO_ENTRY;
    struct entry *entry = table_entry(table, handle);
    unsigned bytes = table->spec->key_bytes;
    memcpy(entry_key(table, entry), key, bytes);
    if (mask) memcpy(entry_mask(table, entry), mask, bytes);
    entry->priority = priority;
    entry->next = NO_ENTRY;
    entry->hash = (uint32_t)hash_key(key, bytes, table->seed);
    if (!is_chained(table)) {
        insert_ordered(table, handle);
    } else if (!insert_chained(table, handle, mask)) {
        give_entry(table, handle);
        return NO_ENTRY;
    }
    entry->in_use = true;
    table->count++;
    return handle;
}

/* Frees a slot and moves back what only stood behind it because it was taken. */
static void free_slot(const struct table *table, struct tuple *tuple, uint32_t *slot) {
    uint32_t last = tuple->capacity - 1, hole = (uint32_t)(slot - tuple->slots);
    for (uint32_t i = (hole + 1) & last; tuple->slots[i] != NO_ENTRY; i = (i + 1) & last) {
        uint32_t home = table_entry(table, tuple->slots[i])->hash & last;
        if (((i - home) & last) < ((i - hole) & last)) continue;
        tuple->slots[hole] = tuple->slots[i];
        hole = i;
    }
    tuple->slots[hole] = NO_ENTRY;
    tuple->used--;
}

static void delete_chained(struct table *table, uint32_t handle) {
    struct entry *entry = table_entry(table, handle);
    struct tuple *tuple = find_tuple(table, table->spec->match == MATCH_EXACT ? NULL : entry_mask(table, entry));
    uint32_t *head = find_slot(table, tuple, entry_key(table, entry), entry->hash), *link = head;
    while (*link != handle) link = &table_entry(table, *link)->next;
    *link = entry->next;
    if (*head == NO_ENTRY) free_slot(table, tuple, head);
    tuple->entries--;
    if (table->spec->match == MATCH_EXACT) return;
    if (!tuple->entries) drop_tuple(table, tuple); /* else max_priority stays: an upper bound will do */
}

void table_delete(struct table *table, uint32_t handle) {
    if (is_chained(table)) {
        delete_chained(table, handle);
    } else {
        uint32_t at = 0;
        while (table->order[at] != handle) at++;
        memmove(&table->order[at], &table->order[at + 1], (table->count - at - 1) * sizeof *table->order);
    }
    give_entry(table, handle);
    table->count--;
}

struct entry *table_lookup_masked(const struct table *table, const uint8_t *key) {
    struct entry *best = NULL;
    uint8_t masked[table->spec->key_bytes + 1];
    for (uint32_t t = 0; t < table->tuple_count; t++) {
        const struct tuple *tuple = &table->tuples[t];
        if (best && best->priority >= tuple->max_priority) break;
        for (unsigned i = 0; i < table->spec->key_bytes; i++) masked[i] = key[i] & tuple->mask[i];
        uint32_t hash = (uint32_t)hash_key(masked, table->spec->key_bytes, table->seed);
        uint32_t handle = *find_slot(table, tuple, masked, hash);
        if (handle == NO_ENTRY) continue;
        struct entry *entry = table_entry(table, handle);
        if (!best || entry->priority > best->priority) best = entry;
    }
    return best;
}

static bool field_matches(const struct key_field *field, const uint8_t *key, const uint8_t *low, const uint8_t *high) {
    key += field->offset, low += field->offset, high += field->offset;
    if (field->is_range) return memcmp(key, low, field->bytes) >= 0 && memcmp(key, high, field->bytes) <= 0;
    for (unsigned i = 0; i < field->bytes; i++)
        if ((key[i] & high[i]) != low[i]) return false;
    return true;
}

/* In these tables an entry's key holds a range's lower end, and its mask the upper end. */
struct entry *table_lookup_range(const struct table *table, const uint8_t *key) {
    for (uint32_t i = 0; i < table->count; i++) {
        struct entry *entry = table_entry(table, table->order[i]);
        bool matches = true;
        for (unsigned f = 0; matches && f < table->spec->field_count; f++)
            matches = field_matches(&table->spec->fields[f], key, entry_key(table, entry), entry_mask(table, entry));
        if (matches) return entry;
    }
    return NULL;
}
