/* The learned value and what it is learned from, as controller/policies/reuse/learned.py and reuse_history.py. */
#include <math.h>
#include "core.h"

#define QUEUE_LINK offsetof(Block, queue)
#define RECENT_LINK offsetof(Block, recent)

static const int32_t EDGES[BUCKETS - 1] = {1,   2,   3,   4,   6,    8,    12,   16,   24,   32,   48,   64,  96,
                                           128, 192, 256, 384, 512,  768,  1024, 1536, 2048, 3072, 4096, 6144, 8192};

void weir_prepare_buckets(Core *core) {
    for (int32_t age = 0, in = 0; age < TRACKED_TICKS; age++) {
        while (in < BUCKETS - 1 && age >= EDGES[in]) in++;
        core->bucket_of[age] = (uint8_t)in;
    }
}

int weir_lineage_of(const Block *grown_from) {
    static const uint32_t counts[] = {2, 3, 4, 6, 9}, children[] = {2, 4, 16, 64};
    int lineage = 0;
    if (grown_from->count == 1) return grown_from->lineage;
    if (grown_from->born < MIN_CHILDREN) {
        while (lineage < 5 && grown_from->count >= counts[lineage]) lineage++;
        return lineage;
    }
    uint32_t for_each = (grown_from->born + 2) / (grown_from->again + 1);
    while (lineage < 4 && for_each >= children[lineage]) lineage++;
    return COUNT_LINEAGES + lineage;
}

static int class_of(uint32_t count, double gap_ticks) {
    int octave = GAP_CLASSES - 1 - bit_length((uint64_t)(gap_ticks * GAP_STEPS_PER_TICK));
    return FIRST_GAP_CLASS + (octave > 0 ? octave : 0) * LEVELS + (count >= 4) + (count >= 9);
}

int weir_fits(const Core *core, int32_t fragments) {
    if (core->held_blocks >= core->room_blocks) return 0;
    return !core->capacity_slots || core->held_slots + fragments <= core->room_slots;
}

static void file_in(Core *core, uint32_t id) {
    uint32_t column = core->blocks[id].column;
    if (core->columns[column].head == NONE) {
        core->place_in_active[column] = (uint32_t)core->actives;
        core->active[core->actives++] = column;
    }
    list_add(core, &core->columns[column], QUEUE_LINK, id);
}

static void file_out(Core *core, uint32_t id) {
    uint32_t column = core->blocks[id].column;
    list_cut(core, &core->columns[column], QUEUE_LINK, id);
    if (core->columns[column].head == NONE) {
        uint32_t last = core->active[--core->actives];
        core->active[core->place_in_active[column]] = last;
        core->place_in_active[last] = core->place_in_active[column];
    }
}

double weir_value(const Core *core, uint32_t id) {
    const Block *block = &core->blocks[id];
    double index = core->index[block->kind][bucket(core, core->tick - block->tick)];
    return index * core->worth_of_step[block->column / CLASSES];
}

/* The block to evict next, and the value that goes with it; NONE if nothing is held. */
uint32_t weir_cheapest(Core *core, double *value) {
    uint32_t best = NONE, best_column = 0;
    for (int i = 0; i < core->actives; i++) {
        uint32_t column = core->active[i];
        const List *queue = &core->columns[column];
        uint32_t id = queue->head;
        double oldest = weir_value(core, id), youngest = weir_value(core, queue->tail);
        if (youngest < oldest) id = queue->tail, oldest = youngest;
        if (best == NONE || oldest < *value || (oldest == *value && column < best_column))
            best = id, *value = oldest, best_column = column;
    }
    if (best != NONE && core->is_prefix)
        while (core->blocks[best].last_child != NONE) best = core->blocks[best].last_child;
    return best;
}

static void hold(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    weir_hold(core, id, 1);
    core->held_blocks++;
    core->held_slots += block->fragments;
    if (block->parent != NONE) {
        Block *parent = &core->blocks[block->parent];
        block->siblings.before = parent->last_child;
        block->siblings.behind = NONE;
        if (parent->last_child != NONE) core->blocks[parent->last_child].siblings.behind = id;
        parent->last_child = id;
    }
    file_in(core, id);
}

static void release(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    file_out(core, id);
    weir_hold(core, id, 0);
    core->held_blocks--;
    core->held_slots -= block->fragments;
    if (block->parent != NONE) {
        uint32_t before = block->siblings.before, behind = block->siblings.behind;
        if (before != NONE) core->blocks[before].siblings.behind = behind;
        if (behind != NONE)
            core->blocks[behind].siblings.before = before;
        else
            core->blocks[block->parent].last_child = before;
    }
    weir_free_if_unused(core, id);
}

void weir_shrink(Core *core) {
    while (core->held_blocks > core->room_blocks || (core->capacity_slots && core->held_slots > core->room_slots)) {
        double value = 0.0;
        uint32_t victim = weir_cheapest(core, &value);
        if (victim == NONE) return;
        release(core, victim);
    }
}

int weir_give_up(Core *core, uint32_t id) {
    if (core->blocks[id].last_child != NONE) return 0;
    if (core->blocks[id].is_held) release(core, id);
    return 1;
}

void weir_resize(Core *core, uint32_t id, int32_t fragments) {
    Block *block = &core->blocks[id];
    if (block->is_held) core->held_slots += fragments - block->fragments;
    block->fragments = fragments;
    block->size_steps = (int32_t)nearbyint(log2(fragments > 1 ? fragments : 1) * STEPS_PER_OCTAVE);
}

static uint32_t *tracked(Core *core, const Block *block) {
    if (core->tick - block->tick >= TRACKED_TICKS) return NULL;
    return &core->tracked[block->tick % TRACKED_TICKS][block->kind];
}

static void count(Core *core, uint32_t id, uint32_t times) {
    Block *block = &core->blocks[id];
    int kind;
    if (block->count) {
        int32_t age = core->tick - block->tick;
        uint32_t *cohort = tracked(core, block);
        if (cohort) --*cohort;
        double gap_ticks = (double)age / times;
        block->gap_ticks += (gap_ticks - block->gap_ticks) / (block->count < GAP_MEMORY ? block->count : GAP_MEMORY);
        if (block->count == 1 && block->parent != NONE) core->blocks[block->parent].again++;
        block->count = block->count > UINT32_MAX - times ? UINT32_MAX : block->count + times;
        kind = class_of(block->count, block->gap_ticks);
        int in = bucket(core, age);
        core->reuses[block->kind][in] += 1.0;
        core->reused++;
        core->at_risk[block->kind][in] -= 1.0;
    } else {
        block->count = times;
        kind = times > 1 ? class_of(times, 0.0) : block->is_last ? 0 : 1 + block->lineage;
    }
    core->at_risk[kind][0] += 1.0;
    core->exposure[kind][0] += 0.5;
    if (times > 1) core->reuses[kind][0] += times - 1;
    block->kind = (uint8_t)kind;
    block->tick = core->tick;
    ++*tracked(core, block);
    int32_t step = core->steps[block->place] - block->size_steps;
    step = step < -MAX_STEPS ? -MAX_STEPS : step >= MAX_STEPS ? MAX_STEPS - 1 : step;
    block->column = (uint32_t)((step + MAX_STEPS) * CLASSES + kind);
    list_cut(core, &core->recent, RECENT_LINK, id);
    list_add(core, &core->recent, RECENT_LINK, id);
}

static void consider(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    if (core->is_prefix && block->parent != NONE && !core->blocks[block->parent].is_held) return;
    double newcomer = weir_value(core, id);
    while (!weir_fits(core, block->fragments)) {
        double value = 0.0;
        uint32_t victim = weir_cheapest(core, &value);
        if (victim == NONE || newcomer <= value * core->hurdle) return;
        if (core->is_prefix && victim == block->parent) return;
        release(core, victim);
    }
    hold(core, id);
}

void weir_ask_learned(Core *core, uint32_t id, uint32_t times) {
    int was_held = core->blocks[id].is_held;
    if (was_held) file_out(core, id);
    count(core, id, times);
    if (was_held)
        file_in(core, id);
    else
        consider(core, id);
}

static void forget(Core *core) {
    for (uint32_t looked_at = core->known; looked_at && core->known > core->remembered; looked_at--) {
        uint32_t id = core->recent.head;
        Block *block = &core->blocks[id];
        list_cut(core, &core->recent, RECENT_LINK, id);
        if (block->is_held) {
            list_add(core, &core->recent, RECENT_LINK, id);
            continue;
        }
        core->at_risk[block->kind][bucket(core, core->tick - block->tick)] -= 1.0;
        uint32_t *cohort = tracked(core, block);
        if (cohort) --*cohort;
        weir_forget(core, id);
    }
}

void weir_end_tick(Core *core) {
    core->tick++;
    memset(core->tracked[core->tick % TRACKED_TICKS], 0, sizeof *core->tracked);
    for (int in = 1; in < BUCKETS && EDGES[in - 1] <= core->tick; in++) {
        const uint32_t *cohort = core->tracked[(core->tick - EDGES[in - 1]) % TRACKED_TICKS];
        for (int kind = 0; kind < CLASSES; kind++) {
            core->at_risk[kind][in - 1] -= cohort[kind];
            core->at_risk[kind][in] += cohort[kind];
            core->passed[kind][in - 1] += cohort[kind];
        }
    }
    forget(core);
    for (int kind = 0; kind < CLASSES; kind++)
        for (int in = 1; in < BUCKETS; in++) core->exposure[kind][in] += core->at_risk[kind][in];
}
