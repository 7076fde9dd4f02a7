/* Description of a program, which generated code gives to the runtime: sizes, and the function that runs
 * packets. */
#ifndef WEIR_PROGRAM_H
#define WEIR_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct vswitch;

enum match_kind {
    MATCH_NONE,   /* no key: always the default action */
    MATCH_EXACT,  /* one hash table */
    MATCH_MASKED, /* lpm, ternary, optional: a classifier */
    MATCH_RANGE,  /* with a range among the keys: a classifier, ranges as prefixes */
};

struct key_field {
    uint16_t offset, bytes;
    bool is_range;
};

struct table_spec {
    const char *name;
    uint8_t match;
    bool has_idle_timeout, has_direct_meter;
    uint16_t key_bytes;
    uint32_t data_bytes;   /* of the largest action's arguments */
    uint32_t size;         /* most entries */
    const struct key_field *fields; /* MATCH_RANGE only */
    uint16_t field_count;
};

struct register_spec {
    const char *name;
    uint32_t size, element_bytes;
    /* Neighbours may share memory, cell beside cell: all but the first of them have an offset. */
    uint32_t offset_bytes, stride_bytes;
};

struct counter_spec {
    const char *name;
    uint32_t size;
};

struct meter_spec {
    const char *name;
    uint32_t size;
    bool bytes;
};

struct profile_spec {
    const char *name;
    uint32_t size, data_bytes;
};

/* An extern object that the user has written in C. */
struct custom_spec {
    void *(*make)(void); /* NULL: no memory */
    void (*free)(void *object);
};

struct program {
    uint32_t phv_bytes;      /* the headers and metadata of one packet */
    uint32_t headroom_bytes; /* at least what the deparser can emit */
    uint32_t tables, registers, counters, meters, profiles, digests, customs;
    const struct table_spec *table;
    const struct register_spec *register_; /* the word is taken */
    const struct counter_spec *counter;
    const struct meter_spec *meter;
    const struct profile_spec *profile;
    const struct custom_spec *custom;
    const uint32_t *digest_bytes;
    /* Runs a packet through the pipeline, and all packets that it causes, except those put into sw->again
     * (resubmit, recirculate). Takes the job. */
    void (*run)(struct vswitch *sw, struct job *job);
    /* Runs the part from egress on, for a packet that leaves its queue. */
    void (*leave)(struct vswitch *sw, struct job *job);
};

extern const struct program weir_program;

#endif
