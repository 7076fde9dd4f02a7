/* What the policy remembers of blocks, and what it wants of them. Blocks are numbers here; the same in Python
   (controller/policies/reuse/reference.py) has objects, and is the reference. */
#ifndef WEIR_POLICY_CORE_H
#define WEIR_POLICY_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#define NONE UINT32_MAX

/* As in reuse_classes.py, reuse_model.py, reuse_history.py: tests compare all decisions. */
enum {
    COUNT_LINEAGES = 6,
    MIN_CHILDREN = 4,
    MAX_CHILDREN = 256,
    FIRST_GAP_CLASS = 12,
    GAP_CLASSES = 12,
    LEVELS = 3,
    CLASSES = FIRST_GAP_CLASS + GAP_CLASSES * LEVELS,
    GAP_STEPS_PER_TICK = 4,
    BUCKETS = 27,
    OLDEST_TICKS = 8192, /* the last edge */
    TRACKED_TICKS = OLDEST_TICKS + 1,
    GAP_MEMORY = 32,
    STEPS_PER_OCTAVE = 4,
    MAX_STEPS = 64, /* of worth, up or down */
    COLUMNS = 2 * MAX_STEPS * CLASSES,
};

typedef struct {
    uint32_t before, behind;
} Link;

typedef struct {
    uint32_t head, tail;
} List;

typedef struct {
    PyObject *key; /* NULL: the number is free, and `parent` is the next free one */
    uint32_t parent, children; /* children: blocks that have it as parent */
    uint32_t count, place, column;
    uint32_t born, again; /* blocks that grew from it, and those of them that were asked for again */
    int32_t tick, fragments, size_steps;
    double gap_ticks;
    uint8_t is_known, is_last, is_held, is_in_pool, kind, lineage;
    uint32_t last_child; /* of those that are held: that the pool should have */
    Link siblings, queue, recent, pool;
} Block;

typedef struct {
    PyObject_HEAD
    PyObject *ids; /* number by key */
    Block *blocks;
    uint32_t made, room, free; /* numbers given out ever, allocated, the first free one */
    int64_t capacity_blocks, capacity_slots; /* of the pool; slots: 0 where nobody counts them */
    /* what is remembered */
    List recent;
    uint32_t known, remembered;
    int32_t tick;
    int64_t reused; /* ever */
    uint32_t (*tracked)[CLASSES];
    double reuses[CLASSES][BUCKETS], exposure[CLASSES][BUCKETS], at_risk[CLASSES][BUCKETS];
    double passed[CLASSES][BUCKETS]; /* blocks that were as old as that all through */
    double index[CLASSES][BUCKETS], chance[CLASSES][BUCKETS];
    uint8_t bucket_of[TRACKED_TICKS];
    /* the learned value */
    List columns[COLUMNS];
    uint32_t active[COLUMNS], place_in_active[COLUMNS];
    int actives;
    double worth_of_step[2 * MAX_STEPS];
    int64_t held_blocks, held_slots, room_blocks, room_slots;
    double hurdle;
    int is_prefix;
    double *seconds; /* by place */
    int32_t *steps;
    Py_ssize_t places;
    /* the pool: blocks that are not held, and those that are */
    List sets[2];
    int64_t pool_blocks;
} Core;

static inline Link *link_of(Core *core, uint32_t id, size_t field) {
    return (Link *)((char *)&core->blocks[id] + field);
}

static inline void list_add(Core *core, List *list, size_t field, uint32_t id) {
    Link *own = link_of(core, id, field);
    own->before = list->tail;
    own->behind = NONE;
    if (list->tail == NONE)
        list->head = id;
    else
        link_of(core, list->tail, field)->behind = id;
    list->tail = id;
}

static inline void list_cut(Core *core, List *list, size_t field, uint32_t id) {
    Link *own = link_of(core, id, field);
    if (own->before == NONE)
        list->head = own->behind;
    else
        link_of(core, own->before, field)->behind = own->behind;
    if (own->behind == NONE)
        list->tail = own->before;
    else
        link_of(core, own->behind, field)->before = own->before;
}

static inline int bit_length(uint64_t value) { return value ? 64 - __builtin_clzll(value) : 0; }

static inline int bucket(const Core *core, int32_t age) {
    return age < TRACKED_TICKS ? core->bucket_of[age] : BUCKETS - 1;
}

/* numbers.c: the number of a key is NONE with or without an exception if it has none */
uint32_t weir_find(Core *core, PyObject *key);
uint32_t weir_find_or_make(Core *core, PyObject *key);
void weir_free_if_unused(Core *core, uint32_t id);
void weir_forget(Core *core, uint32_t id);

/* pool.c */
void weir_hold(Core *core, uint32_t id, int is_held);
void weir_touch(Core *core, uint32_t id);

/* asked.c */
void weir_set_fragments(Core *core, uint32_t id, long fragments);

/* learned.c */
void weir_prepare_buckets(Core *core);
int weir_lineage_of(const Block *grown_from);
double weir_value(const Core *core, uint32_t id);
uint32_t weir_cheapest(Core *core, double *value);
void weir_ask_learned(Core *core, uint32_t id, uint32_t times);
void weir_resize(Core *core, uint32_t id, int32_t fragments);
void weir_end_tick(Core *core);
void weir_shrink(Core *core);
int weir_give_up(Core *core, uint32_t id); /* 0: blocks behind it are held */
int weir_fits(const Core *core, int32_t fragments);

#endif
