/* Entries with ranges: each becomes the rules of the prefixes that its ranges consist of. If there are too
 * many, a range counts as the prefix that its ends share, and is compared by itself. */
#include "table.h"

enum { MAX_PREFIXES = 126, WORD_BYTES = 8 }; /* a range of 64 bits */

struct prefix {
    uint64_t value, mask;
};

struct expansion {
    struct table *table;
    uint32_t handle, last; /* rule */
    bool has_ranges, failed;
    const bool *split; /* by field: into all its prefixes */
    uint8_t *key, *mask;
};

/* Computes the prefixes of low..high, where low <= high; returns how many. */
static unsigned prefixes_of(uint64_t low, uint64_t high, struct prefix *prefixes) {
    unsigned count = 0;
    for (;;) {
        uint64_t open = low ? (low & -low) - 1 : UINT64_MAX; /* the bits that may be anything */
        while ((low | open) > high) open >>= 1;
        prefixes[count++] = (struct prefix){low, ~open};
        if ((low | open) >= high) return count;
        low = (low | open) + 1;
    }
}

static unsigned prefix_count(const struct key_field *field, const uint8_t *low, const uint8_t *high) {
    struct prefix prefixes[MAX_PREFIXES];
    if (field->bytes > WORD_BYTES) return MAX_RULES_PER_ENTRY + 1;
    return prefixes_of(load_be(low + field->offset, field->bytes), load_be(high + field->offset, field->bytes), prefixes);
}

/* Chooses the ranges to split: the smallest ones, as long as the product is within the limit. */
static bool choose(const struct table *table, const uint8_t *low, const uint8_t *high, bool *split) {
    const struct table_spec *spec = table->spec;
    unsigned rules = 1;
    bool all = true;
    memset(split, 0, spec->field_count);
    for (;;) {
        unsigned least = UINT32_MAX, at = 0;
        for (unsigned f = 0; f < spec->field_count; f++) {
            if (!spec->fields[f].is_range || split[f]) continue;
            unsigned count = prefix_count(&spec->fields[f], low, high);
            if (count < least) least = count, at = f;
        }
        if (least == UINT32_MAX) return all;
        if (rules * least > MAX_RULES_PER_ENTRY) return false;
        rules *= least;
        split[at] = true;
    }
}

/* Sets the mask to the bits that both ends share, from the top. */
static void common_prefix(const struct key_field *field, uint8_t *key, uint8_t *mask) {
    bool differ = false;
    for (unsigned i = field->offset; i < field->offset + field->bytes; i++) {
        uint8_t open = differ ? 0xff : key[i] ^ mask[i];
        for (unsigned shift = 1; shift < 8; shift *= 2) open |= (uint8_t)(open >> shift);
        differ = differ || open;
        mask[i] = (uint8_t)~open;
        key[i] &= mask[i];
    }
}

static void expand(struct expansion *expansion, unsigned from) {
    const struct table_spec *spec = expansion->table->spec;
    struct entry *entry = table_entry(expansion->table, expansion->handle);
    while (from < spec->field_count && !expansion->split[from]) from++;
    if (from == spec->field_count) {
        uint32_t rule = classifier_insert(&expansion->table->classifier, expansion->key, expansion->mask, spec->key_bytes,
                                          entry->priority, expansion->handle, expansion->last, expansion->has_ranges);
        expansion->failed = rule == NO_RULE;
        if (!expansion->failed) expansion->last = rule;
        return;
    }
    const struct key_field *field = &spec->fields[from];
    struct prefix prefixes[MAX_PREFIXES];
    uint64_t low = load_be(entry_key(expansion->table, entry) + field->offset, field->bytes);
    uint64_t high = load_be(entry_mask(expansion->table, entry) + field->offset, field->bytes);
    unsigned count = prefixes_of(low, high, prefixes);
    for (unsigned i = 0; i < count && !expansion->failed; i++) {
        store_be(expansion->key + field->offset, field->bytes, prefixes[i].value);
        store_be(expansion->mask + field->offset, field->bytes, prefixes[i].mask);
        expand(expansion, from + 1);
    }
}

uint32_t insert_ranges(struct table *table, uint32_t handle) {
    const struct table_spec *spec = table->spec;
    struct entry *entry = table_entry(table, handle);
    uint8_t key[spec->key_bytes], mask[spec->key_bytes];
    bool split[spec->field_count];
    memcpy(key, entry_key(table, entry), spec->key_bytes);
    memcpy(mask, entry_mask(table, entry), spec->key_bytes);
    bool all = choose(table, key, mask, split);
    for (unsigned f = 0; f < spec->field_count; f++)
        if (spec->fields[f].is_range && !split[f]) common_prefix(&spec->fields[f], key, mask);
    struct expansion expansion = {table, handle, NO_RULE, !all, false, split, key, mask};
    expand(&expansion, 0);
    if (!expansion.failed) return expansion.last;
    classifier_delete(&table->classifier, expansion.last);
    return NO_RULE;
}

bool ranges_match(const struct table *table, uint32_t handle, const uint8_t *key) {
    struct entry *entry = table_entry(table, handle);
    const uint8_t *low = entry_key(table, entry), *high = entry_mask(table, entry);
    for (unsigned f = 0; f < table->spec->field_count; f++) {
        const struct key_field *field = &table->spec->fields[f];
        if (!field->is_range) continue;
        if (memcmp(key + field->offset, low + field->offset, field->bytes) < 0) return false;
        if (memcmp(key + field->offset, high + field->offset, field->bytes) > 0) return false;
    }
    return true;
}
