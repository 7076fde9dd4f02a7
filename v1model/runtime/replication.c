#include "replication.h"

#include <stdlib.h>
#include <string.h>

int replication_init(struct replication *replication) {
    replication->groups = calloc(MULTICAST_GROUPS, sizeof *replication->groups);
    replication->sessions = calloc(CLONE_SESSIONS, sizeof *replication->sessions);
    return replication->groups && replication->sessions ? 0 : -1;
}

static void clear(struct replicas **lists, uint32_t count) {
    for (uint32_t i = 0; lists && i < count; i++) {
        free(lists[i]);
        lists[i] = NULL;
    }
}

void replication_clear(struct replication *replication) {
    clear(replication->groups, MULTICAST_GROUPS);
    clear(replication->sessions, CLONE_SESSIONS);
}

void replication_free(struct replication *replication) {
    replication_clear(replication);
    free(replication->groups);
    free(replication->sessions);
}

int replicas_set(struct replicas **slot, const struct replica *replicas, uint32_t count, uint32_t packet_length_bytes) {
    struct replicas *list = NULL;
    if (replicas) {
        list = malloc(sizeof *list + count * sizeof *replicas);
        if (!list) return -1;
        list->count = count;
        list->packet_length_bytes = packet_length_bytes;
        memcpy(list->replica, replicas, count * sizeof *replicas);
    }
    free(*slot);
    *slot = list;
    return 0;
}
