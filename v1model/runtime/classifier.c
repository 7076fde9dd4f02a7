/* Rules in tuples; see classifier.h. */
#include "classifier.h"

#include <stdlib.h>

enum {
    FIRST_RULES = 64,
    FIRST_SLOTS = 16,
    SPARE_TUPLES = 4,      /* tolerated beyond the plan before a new plan is made */
    FIRST_PLAN_RULES = 16,
    PLAN_SHARE = 8,        /* the share of all rules that must have changed before a new plan */
};

void classifier_init(struct classifier *classifier, unsigned key_bytes, const uint64_t seed[2]) {
    uint32_t words = (key_bytes + 7) / 8;
    *classifier = (struct classifier){.key_words = words, .seed = seed, .free_list = NO_RULE};
    size_t bytes = sizeof(struct rule) + 2 * words * sizeof(uint64_t);
    classifier->rule_bytes = (uint32_t)whole_lines(bytes);
}

static void free_tuple(struct tuple *tuple) {
    if (!tuple) return;
    free(tuple->slots);
    free(tuple->active);
    free(tuple);
}

void classifier_clear(struct classifier *classifier) {
    for (uint32_t i = 0; i < classifier->tuple_count; i++) free_tuple(classifier->tuples[i]);
    free(classifier->rules);
    classifier->rules = NULL;
    classifier->free_list = NO_RULE;
    classifier->capacity = classifier->high_water = classifier->count = 0;
    classifier->tuple_count = classifier->planned_tuples = classifier->changes = 0;
}

/* --- rules */

static uint32_t take_rule(struct classifier *classifier) {
    uint32_t number = classifier->free_list;
    if (number != NO_RULE) {
        classifier->free_list = classifier_rule(classifier, number)->next;
    } else {
        if (classifier->high_water == classifier->capacity) {
            uint32_t capacity = classifier->capacity ? classifier->capacity * 2 : FIRST_RULES;
            uint8_t *rules = aligned_alloc(CACHE_LINE, (size_t)capacity * classifier->rule_bytes);
            if (!rules) return NO_RULE;
            if (classifier->rules) memcpy(rules, classifier->rules, (size_t)classifier->high_water * classifier->rule_bytes);
            free(classifier->rules);
            classifier->rules = rules;
            classifier->capacity = capacity;
        }
        number = classifier->high_water++;
    }
    classifier->count++;
    return number;
}

static void give_rule(struct classifier *classifier, uint32_t number) {
    struct rule *rule = classifier_rule(classifier, number);
    rule->tuple = NULL;
    rule->next = classifier->free_list;
    classifier->free_list = number;
    classifier->count--;
}

/* --- tuples */

static struct tuple *new_tuple(const struct classifier *classifier, const uint64_t *mask) {
    struct tuple *tuple = calloc(1, sizeof *tuple + classifier->key_words * sizeof *mask);
    if (!tuple) return NULL;
    tuple->max_priority = INT32_MIN;
    tuple->active = calloc(classifier->key_words, sizeof *tuple->active);
    for (uint32_t i = 0; tuple->active && i < classifier->key_words; i++) {
        tuple->mask[i] = mask[i];
        tuple->bits += (uint32_t)__builtin_popcountll(mask[i]);
        if (mask[i]) tuple->active[tuple->active_count++] = (uint16_t)i;
    }
    if (tuple->active) return tuple;
    free_tuple(tuple);
    return NULL;
}

static bool set_capacity(const struct classifier *classifier, struct tuple *tuple, uint32_t capacity) {
    struct tuple old = *tuple;
    struct slot *slots = malloc(capacity * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0xff, capacity * sizeof *slots);
    tuple->slots = slots;
    tuple->capacity = capacity;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].rule == NO_RULE) continue;
        const struct rule *first = classifier_rule(classifier, old.slots[i].rule);
        *tuple_slot(classifier, tuple, first->words, classifier->key_words, old.slots[i].hash) = old.slots[i];
    }
    free(old.slots);
    return true;
}

/* Moves tuples[index] to its place by falling max_priority. */
static void sort_tuple(struct classifier *classifier, uint32_t index) {
    struct tuple **tuples = classifier->tuples, *moved = tuples[index];
    for (; index > 0 && tuples[index - 1]->max_priority < moved->max_priority; index--) tuples[index] = tuples[index - 1];
    tuples[index] = moved;
}

static void sort_in(struct classifier *classifier, const struct tuple *tuple) {
    uint32_t index = 0;
    while (classifier->tuples[index] != tuple) index++;
    sort_tuple(classifier, index);
}

static void drop_tuple(struct classifier *classifier, struct tuple *tuple) {
    uint32_t index = 0;
    while (classifier->tuples[index] != tuple) index++;
    free_tuple(tuple);
    classifier->tuple_count--;
    for (; index < classifier->tuple_count; index++) classifier->tuples[index] = classifier->tuples[index + 1];
}

static bool chain_is_long(const struct classifier *classifier, const struct tuple *tuple, const struct rule *rule) {
    if (!tuple->capacity) return false;
    uint32_t number = tuple_slot(classifier, tuple, rule->words, classifier->key_words, tuple_hash(tuple, rule->words, classifier->key_words, classifier->seed))->rule;
    for (uint32_t length = 0; number != NO_RULE; number = classifier_rule(classifier, number)->next)
        if (++length >= CHAIN_LENGTH) return true;
    return false;
}

/* Returns the tuple with the most bits that takes the rule, or NULL. `prefer_short`: one with the rule's
 * own mask, or where its chain is short. */
static struct tuple *find_tuple(struct tuple *const *tuples, uint32_t count, const struct classifier *classifier,
                                struct rule *rule, bool prefer_short) {
    const uint64_t *mask = rule_mask(classifier, rule);
    uint32_t own_bits = 0;
    struct tuple *best = NULL;
    for (uint32_t i = 0; i < classifier->key_words; i++) own_bits += (uint32_t)__builtin_popcountll(mask[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct tuple *tuple = tuples[i];
        if (tuple->bits > own_bits || (best && tuple->bits <= best->bits)) continue;
        if (!covers(tuple->mask, mask, classifier->key_words)) continue;
        if (prefer_short && tuple->bits < own_bits && chain_is_long(classifier, tuple, rule)) continue;
        best = tuple;
    }
    return best;
}

static struct tuple *add_tuple(struct classifier *classifier, const uint64_t *mask) {
    struct tuple *tuple = new_tuple(classifier, mask);
    if (tuple && set_capacity(classifier, tuple, FIRST_SLOTS)) {
        classifier->tuples[classifier->tuple_count++] = tuple;
        return tuple;
    }
    free_tuple(tuple);
    return NULL;
}

static struct tuple *choose_tuple(struct classifier *classifier, struct rule *rule) {
    struct tuple *tuple = find_tuple(classifier->tuples, classifier->tuple_count, classifier, rule, true);
    if (tuple) return tuple;
    if (classifier->tuple_count < MAX_TUPLES) return add_tuple(classifier, rule_mask(classifier, rule));
    tuple = find_tuple(classifier->tuples, classifier->tuple_count, classifier, rule, false);
    if (tuple) return tuple;
    uint64_t nothing[classifier->key_words];
    memset(nothing, 0, sizeof nothing);
    return add_tuple(classifier, nothing);
}

/* Puts a rule into its chain; the tuple has room. */
static void link_rule(struct classifier *classifier, uint32_t number, struct tuple *tuple) {
    struct rule *rule = classifier_rule(classifier, number);
    rule->tuple = tuple;
    rule->hash = tuple_hash(tuple, rule->words, classifier->key_words, classifier->seed);
    struct slot *slot = tuple_slot(classifier, tuple, rule->words, classifier->key_words, rule->hash);
    if (slot->rule == NO_RULE) tuple->used++;
    slot->hash = rule->hash;
    uint32_t *link = &slot->rule;
    while (*link != NO_RULE && classifier_rule(classifier, *link)->priority >= rule->priority)
        link = &classifier_rule(classifier, *link)->next;
    rule->next = *link;
    *link = number;
    tuple->rules++;
    if (rule->priority > tuple->max_priority) tuple->max_priority = rule->priority;
}

/* Frees a slot, and moves back the slots behind it that were displaced by it. */
static void free_slot(struct tuple *tuple, struct slot *slot) {
    uint32_t last = tuple->capacity - 1, hole = (uint32_t)(slot - tuple->slots);
    for (uint32_t i = (hole + 1) & last; tuple->slots[i].rule != NO_RULE; i = (i + 1) & last) {
        uint32_t home = tuple->slots[i].hash & last;
        if (((i - home) & last) < ((i - hole) & last)) continue;
        tuple->slots[hole] = tuple->slots[i];
        hole = i;
    }
    tuple->slots[hole].rule = NO_RULE;
    tuple->used--;
}

static void unlink_rule(struct classifier *classifier, uint32_t number) {
    struct rule *rule = classifier_rule(classifier, number);
    struct tuple *tuple = rule->tuple;
    struct slot *slot = tuple_slot(classifier, tuple, rule->words, classifier->key_words, rule->hash);
    uint32_t *link = &slot->rule;
    while (*link != number) link = &classifier_rule(classifier, *link)->next;
    *link = rule->next;
    if (slot->rule == NO_RULE) free_slot(tuple, slot);
    if (--tuple->rules == 0) drop_tuple(classifier, tuple); /* else max_priority stays: an upper bound will do */
}

/* --- planning anew */

struct replan {
    struct tuple *tuples[MAX_TUPLES + 1];
    uint32_t count;
    uint64_t *masks;
    struct tuple **chosen; /* by rule */
};

static struct tuple *replan_tuple(const struct classifier *classifier, struct replan *plan, const uint64_t *mask) {
    struct tuple *tuple = new_tuple(classifier, mask);
    if (tuple) plan->tuples[plan->count++] = tuple;
    return tuple;
}

/* Decides which rule goes where, and allocates the memory, so that nothing can fail once rules begin to
 * move. */
static bool prepare(const struct classifier *classifier, struct replan *plan) {
    uint32_t words = classifier->key_words, masks = plan_tuples(classifier, plan->masks, MAX_TUPLES / 2);
    for (uint32_t i = 0; i < masks; i++)
        if (!replan_tuple(classifier, plan, plan->masks + (size_t)i * words)) return false;
    memset(plan->masks, 0, words * sizeof *plan->masks);
    for (uint32_t i = 0; i < classifier->high_water; i++) {
        struct rule *rule = classifier_rule(classifier, i);
        if (!rule->tuple) continue;
        struct tuple *tuple = find_tuple(plan->tuples, plan->count, classifier, rule, false);
        if (!tuple)
            tuple = replan_tuple(classifier, plan, plan->count < MAX_TUPLES ? rule_mask(classifier, rule) : plan->masks);
        if (!tuple) return false;
        tuple->rules++;
        plan->chosen[i] = tuple;
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        struct tuple *tuple = plan->tuples[i];
        uint32_t capacity = FIRST_SLOTS;
        while (capacity < tuple->rules * 2) capacity *= 2;
        if (!set_capacity(classifier, tuple, capacity)) return false;
        tuple->rules = 0;
    }
    return true;
}

static void move_rules(struct classifier *classifier, struct replan *plan) {
    for (uint32_t i = 0; i < classifier->tuple_count; i++) free_tuple(classifier->tuples[i]);
    for (uint32_t i = 0; i < classifier->high_water; i++)
        if (classifier_rule(classifier, i)->tuple) link_rule(classifier, i, plan->chosen[i]);
    classifier->tuple_count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (!plan->tuples[i]->rules) {
            free_tuple(plan->tuples[i]);
            continue;
        }
        classifier->tuples[classifier->tuple_count++] = plan->tuples[i];
        sort_tuple(classifier, classifier->tuple_count - 1);
    }
}

/* Plans tuples anew; without memory everything stays as it is. */
static void replan(struct classifier *classifier) {
    struct replan plan = {.count = 0};
    plan.masks = calloc((size_t)(MAX_TUPLES + 1) * classifier->key_words, sizeof *plan.masks);
    plan.chosen = calloc(classifier->high_water, sizeof *plan.chosen);
    if (plan.masks && plan.chosen && prepare(classifier, &plan))
        move_rules(classifier, &plan);
    else
        for (uint32_t i = 0; i < plan.count; i++) free_tuple(plan.tuples[i]);
    free(plan.masks);
    free(plan.chosen);
    classifier->planned_tuples = classifier->tuple_count;
    classifier->changes = 0;
}

static bool needs_plan(const struct classifier *classifier) {
    uint32_t enough = classifier->count / PLAN_SHARE;
    return classifier->tuple_count > classifier->planned_tuples + SPARE_TUPLES &&
           classifier->changes >= (enough > FIRST_PLAN_RULES ? enough : FIRST_PLAN_RULES);
}

/* --- entries */

static uint32_t add_rule(struct classifier *classifier, uint32_t number) {
    struct rule *rule = classifier_rule(classifier, number);
    struct tuple *tuple = choose_tuple(classifier, rule);
    if (tuple && (tuple->used + 1) * 2 > tuple->capacity && !set_capacity(classifier, tuple, tuple->capacity * 2)) {
        if (!tuple->rules) drop_tuple(classifier, tuple);
        tuple = NULL;
    }
    if (!tuple) {
        give_rule(classifier, number);
        return NO_RULE;
    }
    link_rule(classifier, number, tuple);
    sort_in(classifier, tuple);
    classifier->changes++;
    if (needs_plan(classifier)) replan(classifier);
    return number;
}

uint32_t classifier_insert(struct classifier *classifier, const uint8_t *key, const uint8_t *mask, unsigned key_bytes,
                           int32_t priority, uint32_t entry, uint32_t sibling, bool has_ranges) {
    uint32_t number = take_rule(classifier), words = classifier->key_words;
    if (number == NO_RULE) return NO_RULE;
    struct rule *rule = classifier_rule(classifier, number);
    memset(rule, 0, classifier->rule_bytes);
    rule->entry = entry;
    rule->sibling = sibling;
    rule->priority = priority;
    rule->has_ranges = has_ranges;
    memcpy(rule->words, key, key_bytes);
    memcpy(rule->words + words, mask, key_bytes);
    return add_rule(classifier, number);
}

void classifier_delete(struct classifier *classifier, uint32_t number) {
    while (number != NO_RULE) {
        uint32_t sibling = classifier_rule(classifier, number)->sibling;
        unlink_rule(classifier, number);
        give_rule(classifier, number);
        classifier->changes++;
        number = sibling;
    }
}
