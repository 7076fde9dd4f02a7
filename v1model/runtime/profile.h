/* Action profiles and selectors: actions that entries share, alone (members) or as a choice (groups). */
#ifndef WEIR_PROFILE_H
#define WEIR_PROFILE_H

#include <stddef.h>

#include "program.h"

struct member {
    bool in_use;
    uint16_t action;
    uint8_t *data; /* the action's arguments */
};

struct group {
    uint32_t count;
    uint32_t *members; /* handles, one for each unit of weight */
};

struct profile {
    const struct profile_spec *spec;
    struct member *members;
    struct group *groups;
    uint32_t member_capacity, group_capacity;
};

void profile_clear(struct profile *profile);

/* Handles are given by the caller, small and dense. */
int profile_set_member(struct profile *profile, uint32_t handle, uint16_t action, const uint8_t *data);
void profile_delete_member(struct profile *profile, uint32_t handle);
int profile_set_group(struct profile *profile, uint32_t handle, const uint32_t *members, uint32_t count);

static inline const struct member *profile_member(const struct profile *profile, uint32_t handle) {
    return handle < profile->member_capacity && profile->members[handle].in_use ? &profile->members[handle] : NULL;
}

/* NULL: the group is empty or unknown. */
static inline const struct member *profile_choose(const struct profile *profile, uint32_t group, uint64_t hash) {
    if (group >= profile->group_capacity || !profile->groups[group].count) return NULL;
    const struct group *choice = &profile->groups[group];
    return profile_member(profile, choice->members[hash % choice->count]);
}

#endif
