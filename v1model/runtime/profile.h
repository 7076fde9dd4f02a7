/* Action profiles and selectors: actions that entries share, alone (members) or as a choice (groups). */
#ifndef WEIR_PROFILE_H
#define WEIR_PROFILE_H

#include <stddef.h>

#include "program.h"

enum { NO_WATCH = UINT32_MAX };

struct member {
    bool in_use;
    uint16_t action;
    uint8_t *data; /* the action's arguments */
};

/* Share of a member in its group: the hash values below `below`, without those of the members before it. */
struct share {
    uint64_t below; /* this weight and all before it */
    uint32_t member; /* handle */
    uint32_t watch;  /* the port whose link has to be up, or NO_WATCH */
};

struct group {
    uint32_t count;
    bool watches; /* any share does */
    struct share *shares;
};

struct profile {
    const struct profile_spec *spec;
    struct member *members;
    struct group *groups;
    uint32_t member_capacity, group_capacity;
};

void profile_clear(struct profile *profile);

/* Handles are chosen by the caller, small and dense. */
int profile_set_member(struct profile *profile, uint32_t handle, uint16_t action, const uint8_t *data);
void profile_delete_member(struct profile *profile, uint32_t handle);
/* Weights are at least 1. */
int profile_set_group(struct profile *profile, uint32_t handle, const uint32_t *members, const uint32_t *weights,
                      const uint32_t *watches, uint32_t count);

/* Chooses as profile_choose does, among the members whose links are up; returns NULL if there are none. */
const struct member *profile_choose_live(const struct profile *profile, const struct group *group, uint64_t hash,
                                         const bool *link_down);

static inline const struct member *profile_member(const struct profile *profile, uint32_t handle) {
    return handle < profile->member_capacity && profile->members[handle].in_use ? &profile->members[handle] : NULL;
}

/* Returns the member at the hash's place in a list with each member `weight` times, as in simple_switch;
 * found by bisection. NULL: the group is empty or unknown. */
static inline const struct member *profile_choose(const struct profile *profile, uint32_t group, uint64_t hash,
                                                 const bool *link_down) {
    if (group >= profile->group_capacity || !profile->groups[group].count) return NULL;
    const struct group *choice = &profile->groups[group];
    if (choice->watches) return profile_choose_live(profile, choice, hash, link_down);
    uint32_t low = 0, high = choice->count - 1;
    uint64_t place = hash % choice->shares[high].below;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (place < choice->shares[middle].below)
            high = middle;
        else
            low = middle + 1;
    }
    return profile_member(profile, choice->shares[low].member);
}

#endif
