#include "profile.h"

#include <stdlib.h>
#include <string.h>

/* Extends an array so that array[handle] exists; new elements are zero. */
static int reserve(void **array, uint32_t *capacity, uint32_t handle, size_t element_bytes) {
    if (handle < *capacity) return 0;
    uint32_t wanted = *capacity ? *capacity : 16;
    while (wanted <= handle) wanted *= 2;
    uint8_t *grown = realloc(*array, wanted * element_bytes);
    if (!grown) return -1;
    memset(grown + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
    *array = grown;
    *capacity = wanted;
    return 0;
}

void profile_clear(struct profile *profile) {
    for (uint32_t i = 0; i < profile->member_capacity; i++) free(profile->members[i].data);
    for (uint32_t i = 0; i < profile->group_capacity; i++) free(profile->groups[i].shares);
    free(profile->members);
    free(profile->groups);
    profile->members = NULL;
    profile->groups = NULL;
    profile->member_capacity = profile->group_capacity = 0;
}

int profile_set_member(struct profile *profile, uint32_t handle, uint16_t action, const uint8_t *data) {
    void *array = profile->members;
    if (reserve(&array, &profile->member_capacity, handle, sizeof *profile->members)) return -1;
    profile->members = array;
    struct member *member = &profile->members[handle];
    if (!member->data) member->data = malloc(profile->spec->data_bytes + 1);
    if (!member->data) return -1;
    memcpy(member->data, data, profile->spec->data_bytes);
    member->action = action;
    member->in_use = true;
    return 0;
}

void profile_delete_member(struct profile *profile, uint32_t handle) {
    if (handle < profile->member_capacity) profile->members[handle].in_use = false;
}

int profile_set_group(struct profile *profile, uint32_t handle, const uint32_t *members, const uint32_t *weights,
                      const uint32_t *watches, uint32_t count) {
    void *array = profile->groups;
    if (reserve(&array, &profile->group_capacity, handle, sizeof *profile->groups)) return -1;
    profile->groups = array;
    struct share *shares = malloc((count + (size_t)1) * sizeof *shares);
    if (!shares) return -1;
    uint64_t below = 0;
    bool watched = false;
    for (uint32_t i = 0; i < count; i++) {
        below += weights[i];
        shares[i] = (struct share){.below = below, .member = members[i], .watch = watches[i]};
        watched = watched || watches[i] != NO_WATCH;
    }
    free(profile->groups[handle].shares);
    profile->groups[handle] = (struct group){.count = count, .watches = watched, .shares = shares};
    return 0;
}

static uint64_t live_weight(const struct group *group, uint32_t i, const bool *link_down) {
    const struct share *share = &group->shares[i];
    if (share->watch != NO_WATCH && link_down[share->watch]) return 0;
    return share->below - (i ? group->shares[i - 1].below : 0);
}

const struct member *profile_choose_live(const struct profile *profile, const struct group *group, uint64_t hash,
                                         const bool *link_down) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < group->count; i++) total += live_weight(group, i, link_down);
    if (!total) return NULL;
    uint64_t place = hash % total;
    uint32_t i = 0;
    for (uint64_t weight; (weight = live_weight(group, i, link_down)) <= place; i++) place -= weight;
    return profile_member(profile, group->shares[i].member);
}
