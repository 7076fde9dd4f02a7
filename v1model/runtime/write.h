/* Table entries directly from P4Runtime's bytes (p4.v1.Update), which take Python 20 µs each.
 *
 * Only simple updates are done here: an INSERT, MODIFY or DELETE of an entry with exact, lpm, ternary,
 * range or optional keys and an action of its own. Everything else, including all errors, is left to the
 * caller. It has the checks that explain an error, and knows the entries that are more than key and
 * action. */
#ifndef WEIR_WRITE_H
#define WEIR_WRITE_H

#include <stdint.h>

enum { MAX_WIRE_FIELDS = 64, MAX_WIRE_KEY_BYTES = 1024, MAX_WIRE_DATA_BYTES = 4096 };

/* Description of tables from the P4Info; v1model/binding/writer.py has the same structures. */
struct wire_field {
    uint32_t id, kind; /* kind: the field's number in p4.v1.FieldMatch */
    uint32_t offset, width; /* in the packed key, bytes; bits */
};

struct wire_param {
    uint32_t id;
    uint32_t offset, bytes, width; /* in the packed arguments; bits */
};

struct wire_action {
    uint32_t id, number;
    uint32_t first_param, params;
};

struct wire_table {
    uint32_t id, number;
    uint32_t needs_priority, is_lpm, may_modify;
    uint32_t first_field, fields, first_action, actions;
};

struct wire_schema {
    const struct wire_table *tables;
    const struct wire_field *fields;
    const struct wire_action *actions;
    const struct wire_param *params;
    uint32_t table_count;
};

#endif
