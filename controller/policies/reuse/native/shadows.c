/* MQ, LIRS and ARC, as controller/policies/reuse/shadows.py has them. */
#include "core.h"

#define MQ_LINK offsetof(Block, mq)
#define STACK_LINK offsetof(Block, stack)
#define LIRS_LINK offsetof(Block, lirs)
#define ARC_LINK offsetof(Block, arc)

/* MQ */

static void mq_evict(Core *core) {
    int number = 0;
    while (core->mq_queues[number].head == NONE) number++;
    uint32_t id = core->mq_queues[number].head;
    int64_t size = core->blocks[id].size;
    list_cut(core, &core->mq_queues[number], MQ_LINK, id);
    core->mq_used -= size;
    List *ghosts = &core->mq_ghosts;
    while (ghosts->total + size > MQ_GHOSTS * core->capacity && ghosts->head != NONE) {
        uint32_t ghost = ghosts->head;
        list_cut(core, ghosts, MQ_LINK, ghost);
        core->blocks[ghost].mq_at = 0;
        weir_free_if_unused(core, ghost);
    }
    list_add(core, ghosts, MQ_LINK, id);
    core->blocks[id].mq_at = MQ_GHOST;
    weir_let_go(core, id, MQ);
}

static void mq_adjust(Core *core) {
    int64_t now = core->mq_now;
    core->mq_due = now + MQ_LIFETIME;
    for (int number = 1; number < MQ_QUEUES; number++) {
        uint32_t head = core->mq_queues[number].head;
        if (head == NONE || core->blocks[head].mq_until >= now) continue;
        list_cut(core, &core->mq_queues[number], MQ_LINK, head);
        list_add(core, &core->mq_queues[number - 1], MQ_LINK, head);
        core->blocks[head].mq_until = now + MQ_LIFETIME;
        core->blocks[head].mq_at = (uint8_t)number;
    }
    for (int number = 1; number < MQ_QUEUES; number++) {
        uint32_t head = core->mq_queues[number].head;
        if (head != NONE && core->blocks[head].mq_until < core->mq_due) core->mq_due = core->blocks[head].mq_until;
    }
}

void weir_ask_mq(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    int64_t now = ++core->mq_now;
    if (block->mq_at && block->mq_at != MQ_GHOST) {
        list_cut(core, &core->mq_queues[block->mq_at - 1], MQ_LINK, id);
    } else {
        while (core->mq_used + block->size > core->capacity && core->mq_used) mq_evict(core);
        if (block->mq_at)
            list_cut(core, &core->mq_ghosts, MQ_LINK, id);
        else
            block->mq_count = 0;
        core->mq_used += block->size;
    }
    block->mq_count++;
    int level = bit_length(block->mq_count) - 1;
    if (level >= MQ_QUEUES) level = MQ_QUEUES - 1;
    list_add(core, &core->mq_queues[level], MQ_LINK, id);
    block->mq_at = (uint8_t)(level + 1);
    block->mq_until = now + MQ_LIFETIME;
    if (now > core->mq_due) mq_adjust(core);
}

/* LIRS */

static void lirs_make_room(Core *core, int64_t size) {
    while (core->lirs_cold.total + size > core->lirs_cold_room && core->lirs_cold.head != NONE) {
        uint32_t id = core->lirs_cold.head;
        Block *block = &core->blocks[id];
        list_cut(core, &core->lirs_cold, LIRS_LINK, id);
        block->lirs_at &= (uint8_t)~COLD;
        if (block->lirs_at & STACKED) {
            list_add(core, &core->lirs_ghosts, LIRS_LINK, id);
            block->lirs_at |= GHOST;
        }
        weir_let_go(core, id, LIRS);
    }
}

static void lirs_prune(Core *core) {
    List *stack = &core->lirs_stack;
    while (stack->head != stack->tail) {
        uint32_t id = stack->head;
        Block *block = &core->blocks[id];
        if (block->lirs_at & HOT) return;
        list_cut(core, stack, STACK_LINK, id);
        block->lirs_at &= (uint8_t)~STACKED;
        if (block->lirs_at & GHOST) {
            list_cut(core, &core->lirs_ghosts, LIRS_LINK, id);
            block->lirs_at = 0;
            weir_free_if_unused(core, id);
        }
    }
}

static void lirs_cool(Core *core) {
    uint32_t id = core->lirs_stack.head;
    Block *block = &core->blocks[id];
    list_cut(core, &core->lirs_stack, STACK_LINK, id);
    core->lirs_hot -= block->size;
    block->lirs_at = 0;
    lirs_make_room(core, block->size);
    list_add(core, &core->lirs_cold, LIRS_LINK, id);
    block->lirs_at = COLD;
    lirs_prune(core);
}

static void lirs_warm(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    List *stack = &core->lirs_stack;
    if (block->lirs_at & COLD) list_cut(core, &core->lirs_cold, LIRS_LINK, id);
    if (block->lirs_at & GHOST) list_cut(core, &core->lirs_ghosts, LIRS_LINK, id);
    block->lirs_at &= STACKED;
    while (core->lirs_hot + block->size > core->lirs_hot_room && core->blocks[stack->head].lirs_at & HOT)
        lirs_cool(core);
    if (!(block->lirs_at & STACKED)) list_add(core, stack, STACK_LINK, id);
    block->lirs_at = STACKED | HOT;
    core->lirs_hot += block->size;
}

static void lirs_ask_unstacked(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    if (block->lirs_at & COLD) {
        list_cut(core, &core->lirs_cold, LIRS_LINK, id);
        list_add(core, &core->lirs_cold, LIRS_LINK, id);
        if (core->lirs_hot + block->size > core->lirs_hot_room && core->lirs_stack.head != NONE) lirs_cool(core);
    } else if (core->lirs_hot + block->size <= core->lirs_hot_room) {
        core->lirs_hot += block->size;
        list_add(core, &core->lirs_stack, STACK_LINK, id);
        block->lirs_at = STACKED | HOT;
        return;
    } else {
        lirs_make_room(core, block->size);
        list_add(core, &core->lirs_cold, LIRS_LINK, id);
        block->lirs_at |= COLD;
    }
    list_add(core, &core->lirs_stack, STACK_LINK, id);
    block->lirs_at |= STACKED;
}

void weir_ask_lirs(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    if (!(block->lirs_at & STACKED)) {
        lirs_ask_unstacked(core, id);
    } else {
        list_cut(core, &core->lirs_stack, STACK_LINK, id);
        list_add(core, &core->lirs_stack, STACK_LINK, id);
        if (block->lirs_at & HOT)
            lirs_prune(core);
        else
            lirs_warm(core, id);
    }
    while (core->lirs_stack.total > LIRS_STACK * core->capacity && core->lirs_ghosts.head != NONE) {
        uint32_t ghost = core->lirs_ghosts.head;
        list_cut(core, &core->lirs_ghosts, LIRS_LINK, ghost);
        list_cut(core, &core->lirs_stack, STACK_LINK, ghost);
        core->blocks[ghost].lirs_at = 0;
        weir_free_if_unused(core, ghost);
    }
}

/* ARC */

static void arc_move(Core *core, uint32_t id, int to) {
    Block *block = &core->blocks[id];
    if (block->arc_at) list_cut(core, &core->arc_lists[block->arc_at - 1], ARC_LINK, id);
    if (to) list_add(core, &core->arc_lists[to - 1], ARC_LINK, id);
    block->arc_at = (uint8_t)to;
}

static int64_t arc_held(const Core *core) { return core->arc_lists[0].total + core->arc_lists[1].total; }

static void arc_make_room(Core *core, int64_t size, int was_twice) {
    List *once = &core->arc_lists[ONCE - 1], *twice = &core->arc_lists[TWICE - 1];
    while (arc_held(core) + size > core->capacity && (once->head != NONE || twice->head != NONE)) {
        double total = (double)once->total;
        int once_first = total > core->arc_wanted || (was_twice && total == core->arc_wanted) || twice->head == NONE;
        int from_once = once->head != NONE && once_first;
        uint32_t id = from_once ? once->head : twice->head;
        arc_move(core, id, from_once ? GONE_ONCE : GONE_TWICE);
        weir_let_go(core, id, ARC);
    }
}

static void arc_forget_first(Core *core, int list) {
    uint32_t id = core->arc_lists[list - 1].head;
    if (id == NONE) return;
    arc_move(core, id, 0);
    if (list == ONCE)
        weir_let_go(core, id, ARC);
    else
        weir_free_if_unused(core, id);
}

static void arc_adapt(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    int was_twice = block->arc_at == GONE_TWICE;
    double gone_once = (double)core->arc_lists[GONE_ONCE - 1].total;
    double gone_twice = (double)core->arc_lists[GONE_TWICE - 1].total;
    double step = was_twice ? gone_once / gone_twice : gone_twice / gone_once;
    step = (step > 1.0 ? step : 1.0) * (double)block->size;
    double wanted = was_twice ? core->arc_wanted - step : core->arc_wanted + step;
    double most = (double)core->capacity;
    core->arc_wanted = wanted < 0.0 ? 0.0 : wanted > most ? most : wanted;
    arc_make_room(core, block->size, was_twice);
    arc_move(core, id, TWICE);
}

void weir_ask_arc(Core *core, uint32_t id) {
    Block *block = &core->blocks[id];
    int64_t size = block->size;
    if (block->arc_at == ONCE || block->arc_at == TWICE) {
        arc_move(core, id, TWICE);
        return;
    }
    if (block->arc_at) {
        arc_adapt(core, id);
        return;
    }
    int64_t once = core->arc_lists[ONCE - 1].total, gone_once = core->arc_lists[GONE_ONCE - 1].total;
    if (once + gone_once + size > core->capacity)
        arc_forget_first(core, once + size <= core->capacity ? GONE_ONCE : ONCE);
    else if (arc_held(core) + gone_once + core->arc_lists[GONE_TWICE - 1].total + size > 2 * core->capacity)
        arc_forget_first(core, GONE_TWICE);
    arc_make_room(core, size, 0);
    arc_move(core, id, ONCE);
}

/* What is too much leaves with what is asked for. */
void weir_resize_shadows(Core *core, int64_t capacity) {
    int64_t least = LIRS_MIN_COLD_BLOCKS * (core->capacity_slots ? core->capacity_slots : 1);
    core->capacity = capacity;
    core->lirs_cold_room = capacity / LIRS_COLD > least ? capacity / LIRS_COLD : least;
    core->lirs_hot_room = capacity - core->lirs_cold_room;
    if (core->arc_wanted > (double)capacity) core->arc_wanted = (double)capacity;
}
