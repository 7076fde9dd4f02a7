/* Updates of P4Runtime into tables; see write.h. The bytes are untrusted: every length is checked. */
#include "write.h"

#include "api.h"
#include "switch.h"

enum { INTEGER_BYTES = 16 }; /* wider arguments are big-endian bytes: v1model/backend/layout.py */
enum wire_type { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum update_type { INSERT = 1, MODIFY = 2, DELETE = 3 };
/* Numbers of fields in p4runtime.proto. */
enum { REQUEST_UPDATES = 4, UPDATE_TYPE = 1, UPDATE_ENTITY = 2, ENTITY_TABLE_ENTRY = 2 };
enum { ENTRY_TABLE_ID = 1, ENTRY_MATCH = 2, ENTRY_ACTION = 3, ENTRY_PRIORITY = 4 };
enum { MATCH_FIELD_ID = 1, KIND_EXACT = 2, KIND_TERNARY = 3, KIND_LPM = 4, KIND_RANGE = 6, KIND_OPTIONAL = 7 };
enum { TABLE_ACTION_ACTION = 1, ACTION_ID = 1, ACTION_PARAMS = 4, PARAM_ID = 2, PARAM_VALUE = 3 };

struct bytes {
    const uint8_t *at, *end;
};

struct field {
    uint32_t number;
    enum wire_type type;
    uint64_t varint;
    struct bytes bytes;
};

/* Checked update: what to do with which entry. */
struct update {
    const struct wire_table *table;
    enum update_type type;
    int32_t priority;
    uint32_t action;
    bool has_action;
    uint8_t key[MAX_WIRE_KEY_BYTES], mask[MAX_WIRE_KEY_BYTES], data[MAX_WIRE_DATA_BYTES];
};

/* --- protobuf's encoding */

static bool read_varint(struct bytes *from, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t byte = *from->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Reads the next field; the value of a fixed32 or fixed64, which no message here has, is skipped. */
static bool read_field(struct bytes *from, struct field *field) {
    uint64_t tag, length;
    if (!read_varint(from, &tag) || tag >> 32) return false;
    field->number = (uint32_t)(tag >> 3);
    field->type = tag & 7;
    if (field->type == VARINT) return read_varint(from, &field->varint);
    if (field->type == FIXED32 || field->type == FIXED64)
        length = field->type == FIXED32 ? 4 : 8;
    else if (field->type != BYTES || !read_varint(from, &length))
        return false;
    if (length > (uint64_t)(from->end - from->at)) return false;
    field->bytes = (struct bytes){from->at, from->at + length};
    from->at += length;
    return true;
}

/* Reads a message whose only field is bytes with this number. */
static bool read_only(struct bytes message, uint32_t number, struct bytes *value) {
    struct field field;
    if (!read_field(&message, &field) || field.type != BYTES || field.number != number) return false;
    *value = field.bytes;
    return message.at == message.end;
}

/* Reads a number as `bytes` big-endian bytes; returns false if it is empty or has more than `width` bits. */
static bool read_value(struct bytes from, uint8_t *value, uint32_t bytes, uint32_t width) {
    if (from.at == from.end) return false;
    while (from.at < from.end && !*from.at) from.at++;
    uint32_t length = (uint32_t)(from.end - from.at);
    if (length > bytes) return false;
    memset(value, 0, bytes - length);
    memcpy(value + bytes - length, from.at, length);
    return width % 8 == 0 || bytes == 0 || !(value[0] >> width % 8);
}

/* --- match fields: in the canonical form, which leaves out those that match anything */

static void prefix_mask(uint8_t *mask, uint32_t bytes, uint32_t width, uint32_t length) {
    uint32_t open = width - length; /* bits at the end */
    for (uint32_t i = bytes; i-- > 0; open -= open < 8 ? open : 8) mask[i] = open >= 8 ? 0 : (uint8_t)(0xff << open);
    if (width % 8) mask[0] &= (uint8_t)((1u << width % 8) - 1);
}

static bool is_zero(const uint8_t *value, uint32_t bytes) {
    uint8_t any = 0;
    for (uint32_t i = 0; i < bytes; i++) any |= value[i];
    return !any;
}

/* Returns whether the mask is not 0, and the value has no bits outside of it. */
static bool is_masked(const uint8_t *value, const uint8_t *mask, uint32_t bytes) {
    uint8_t outside = 0;
    for (uint32_t i = 0; i < bytes; i++) outside |= value[i] & (uint8_t)~mask[i];
    return !outside && !is_zero(mask, bytes);
}

/* Reads the two parts of ternary (value, mask), range (low, high) and lpm (value, length). */
static bool read_pair(struct bytes message, enum wire_type second, struct bytes *value, struct field *other) {
    struct field first;
    return read_field(&message, &first) && first.number == 1 && first.type == BYTES && read_field(&message, other) &&
           other->number == 2 && other->type == second && message.at == message.end && (*value = first.bytes, true);
}

static bool read_match(const struct wire_field *field, struct bytes message, uint8_t *key, uint8_t *mask) {
    uint32_t bytes = (field->width + 7) / 8, width = field->width;
    struct bytes value;
    struct field other;
    uint8_t full[MAX_WIRE_KEY_BYTES];
    switch (field->kind) {
    case KIND_EXACT:
    case KIND_OPTIONAL:
        prefix_mask(mask, bytes, width, width);
        return read_only(message, 1, &value) && read_value(value, key, bytes, width);
    case KIND_LPM:
        if (!read_pair(message, VARINT, &value, &other) || !other.varint || other.varint > width) return false;
        prefix_mask(mask, bytes, width, (uint32_t)other.varint);
        return read_value(value, key, bytes, width) && is_masked(key, mask, bytes);
    case KIND_TERNARY:
        return read_pair(message, BYTES, &value, &other) && read_value(value, key, bytes, width) &&
               read_value(other.bytes, mask, bytes, width) && is_masked(key, mask, bytes);
    case KIND_RANGE:
        if (!read_pair(message, BYTES, &value, &other) || !read_value(value, key, bytes, width) ||
            !read_value(other.bytes, mask, bytes, width) || memcmp(key, mask, bytes) > 0)
            return false;
        prefix_mask(full, bytes, width, width);
        return !is_zero(key, bytes) || memcmp(mask, full, bytes) != 0; /* not the whole range */
    default:
        return false;
    }
}

static const struct wire_field *find_field(const struct wire_schema *schema, const struct wire_table *table, uint64_t id) {
    const struct wire_field *fields = schema->fields + table->first_field;
    for (uint32_t i = 0; i < table->fields; i++)
        if (fields[i].id == id) return &fields[i];
    return NULL;
}

static bool take_match(const struct wire_schema *schema, struct update *update, struct bytes message, uint64_t *seen) {
    struct field id, match;
    if (!read_field(&message, &id) || id.number != MATCH_FIELD_ID || id.type != VARINT) return false;
    if (!read_field(&message, &match) || match.type != BYTES || message.at != message.end) return false;
    const struct wire_field *field = find_field(schema, update->table, id.varint);
    if (!field || match.number != field->kind) return false;
    uint64_t bit = UINT64_C(1) << (field - schema->fields - update->table->first_field);
    if (*seen & bit) return false;
    *seen |= bit;
    return read_match(field, match.bytes, update->key + field->offset, update->mask + field->offset);
}

/* Sets the fields of a key that the entry leaves out. */
static bool complete_key(const struct wire_schema *schema, struct update *update, uint64_t seen) {
    const struct wire_table *table = update->table;
    for (uint32_t i = 0; i < table->fields; i++) {
        const struct wire_field *field = &schema->fields[table->first_field + i];
        uint32_t bytes = (field->width + 7) / 8;
        if (seen >> i & 1) continue;
        if (field->kind == KIND_EXACT) return false;
        memset(update->key + field->offset, 0, bytes);
        prefix_mask(update->mask + field->offset, bytes, field->width, field->kind == KIND_RANGE ? field->width : 0);
    }
    return true;
}

/* Sets the priority by prefix length, where the longer prefix wins, as in Python's KeyPacker. */
static void prefix_priority(const struct wire_schema *schema, struct update *update) {
    for (uint32_t i = 0; i < update->table->fields; i++) {
        const struct wire_field *field = &schema->fields[update->table->first_field + i];
        if (field->kind != KIND_LPM) continue;
        update->priority = 0;
        for (uint32_t k = 0; k < (field->width + 7) / 8; k++)
            update->priority += __builtin_popcount(update->mask[field->offset + k]);
    }
}

/* --- actions */

static bool read_argument(const struct wire_param *param, struct bytes value, uint8_t *data) {
    uint8_t *to = data + param->offset, wire[INTEGER_BYTES];
    if (param->bytes > INTEGER_BYTES) return read_value(value, to, param->bytes, param->width);
    uint32_t bytes = (param->width + 7) / 8;
    if (!read_value(value, wire, bytes, param->width)) return false;
    for (uint32_t i = 0; i < bytes; i++) to[i] = wire[bytes - 1 - i];
    return true;
}

static bool take_param(const struct wire_schema *schema, const struct wire_action *action, struct bytes message,
                       uint8_t *data, uint64_t *seen) {
    struct field id, value;
    if (!read_field(&message, &id) || id.number != PARAM_ID || id.type != VARINT) return false;
    if (!read_field(&message, &value) || value.number != PARAM_VALUE || value.type != BYTES || message.at != message.end)
        return false;
    for (uint32_t i = 0; i < action->params; i++) {
        const struct wire_param *param = &schema->params[action->first_param + i];
        if (param->id != id.varint) continue;
        if (*seen >> i & 1) return false;
        *seen |= UINT64_C(1) << i;
        return read_argument(param, value.bytes, data);
    }
    return false;
}

static bool take_action(const struct wire_schema *schema, struct update *update, struct bytes table_action) {
    const struct wire_action *action = NULL;
    struct bytes message;
    struct field field;
    uint64_t seen = 0;
    if (!read_only(table_action, TABLE_ACTION_ACTION, &message) || !read_field(&message, &field)) return false;
    if (field.number != ACTION_ID || field.type != VARINT) return false;
    for (uint32_t i = 0; i < update->table->actions && !action; i++)
        if (schema->actions[update->table->first_action + i].id == field.varint)
            action = &schema->actions[update->table->first_action + i];
    if (!action) return false;
    while (message.at < message.end)
        if (!read_field(&message, &field) || field.number != ACTION_PARAMS || field.type != BYTES ||
            !take_param(schema, action, field.bytes, update->data, &seen))
            return false;
    update->action = action->number;
    return seen == (UINT64_C(1) << action->params) - 1;
}

/* --- updates */

static const struct wire_table *find_table(const struct wire_schema *schema, uint64_t id) {
    for (uint32_t i = 0; i < schema->table_count; i++)
        if (schema->tables[i].id == id) return &schema->tables[i];
    return NULL;
}

/* Reads an entry. Fields are in the order of their numbers, as protobuf writes them, so that everything
 * the key needs is known before it. */
static bool read_entry(const struct wire_schema *schema, const struct vswitch *sw, struct update *update,
                       struct bytes message) {
    struct field field;
    uint64_t seen = 0;
    if (!read_field(&message, &field) || field.number != ENTRY_TABLE_ID || field.type != VARINT) return false;
    if (!(update->table = find_table(schema, field.varint))) return false;
    update->priority = 0;
    update->has_action = false;
    memset(update->data, 0, sw->tables[update->table->number].spec->data_bytes);
    while (message.at < message.end) {
        if (!read_field(&message, &field)) return false;
        if (field.number == ENTRY_MATCH && field.type == BYTES) {
            if (!take_match(schema, update, field.bytes, &seen)) return false;
        } else if (field.number == ENTRY_ACTION && field.type == BYTES && !update->has_action) {
            if (!take_action(schema, update, field.bytes)) return false;
            update->has_action = true;
        } else if (field.number == ENTRY_PRIORITY && field.type == VARINT && !update->priority && field.varint <= INT32_MAX) {
            update->priority = (int32_t)field.varint;
        } else {
            return false;
        }
    }
    if ((update->priority > 0) != update->table->needs_priority || !complete_key(schema, update, seen)) return false;
    if (update->table->is_lpm) prefix_priority(schema, update);
    return true;
}

static bool read_update(const struct wire_schema *schema, const struct vswitch *sw, struct update *update,
                        struct bytes message) {
    struct field type, entity;
    struct bytes entry;
    if (!read_field(&message, &type) || type.number != UPDATE_TYPE || type.type != VARINT) return false;
    if (type.varint < INSERT || type.varint > DELETE) return false;
    if (!read_field(&message, &entity) || entity.number != UPDATE_ENTITY || entity.type != BYTES) return false;
    if (message.at != message.end || !read_only(entity.bytes, ENTITY_TABLE_ENTRY, &entry)) return false;
    update->type = (enum update_type)type.varint;
    return read_entry(schema, sw, update, entry) && (update->has_action || update->type == DELETE);
}

static void set_entry(const struct table *table, struct entry *entry, const struct update *update, uint64_t now_us) {
    entry->kind = TARGET_ACTION;
    entry->action = (uint16_t)update->action;
    entry->target = 0;
    memcpy(entry->data, update->data, table->spec->data_bytes);
    entry->idle_timeout_us = 0;
    entry->last_hit_us = entry->reported_us = now_us;
}

static bool apply(struct vswitch *sw, const struct update *update, uint64_t now_us) {
    struct table *table = &sw->tables[update->table->number];
    const uint8_t *mask = table->spec->match == MATCH_EXACT ? NULL : update->mask;
    if (update->type == INSERT) {
        uint32_t handle = table_insert(table, update->key, mask, update->priority);
        if (handle == NO_ENTRY || handle == ENTRY_EXISTS) return false;
        table_entry(table, handle)->plain = true;
        set_entry(table, table_entry(table, handle), update, now_us);
        return true;
    }
    uint32_t handle = table_find(table, update->key, mask, update->priority);
    if (handle == NO_ENTRY || !table_entry(table, handle)->plain) return false;
    if (update->type == MODIFY && !update->table->may_modify) return false;
    if (update->type == DELETE)
        table_delete(table, handle);
    else
        set_entry(table, table_entry(table, handle), update, now_us);
    return true;
}

uint32_t weir_write(struct vswitch *sw, const struct wire_schema *schema, const uint8_t *request, uint32_t length,
                    uint32_t *cursor, uint32_t most) {
    struct bytes from = {request + *cursor, request + length};
    struct field field;
    struct update update;
    uint64_t now_us = clock_now_us(sw);
    uint32_t done = 0;
    while (done < most && from.at < from.end) {
        if (!read_field(&from, &field)) from.at = from.end; /* the rest is not for this writer */
        else if (field.number == REQUEST_UPDATES && field.type == BYTES) {
            if (!read_update(schema, sw, &update, field.bytes)) break;
            switch_lock(sw);
            bool applied = apply(sw, &update, now_us);
            switch_unlock(sw);
            if (!applied) break;
            done++;
        }
        *cursor = (uint32_t)(from.at - request);
    }
    return done;
}

uint32_t weir_skip_update(const uint8_t *request, uint32_t length, uint32_t cursor) {
    struct bytes from = {request + cursor, request + length};
    struct field field;
    while (from.at < from.end) {
        if (!read_field(&from, &field)) return length;
        if (field.number == REQUEST_UPDATES && field.type == BYTES) break;
    }
    return (uint32_t)(from.at - request);
}
