/* Multicast groups and clone sessions: lists of replicas that the control plane sets. */
#ifndef WEIR_REPLICATION_H
#define WEIR_REPLICATION_H

#include <stdint.h>

enum { MULTICAST_GROUPS = 65536, CLONE_SESSIONS = 32768 };

struct replica {
    uint16_t port, instance;
};

struct replicas {
    uint32_t count;
    uint32_t packet_length_bytes; /* clone sessions: truncate to this; 0: don't */
    struct replica replica[];
};

struct replication {
    struct replicas **groups, **sessions;
};

int replication_init(struct replication *replication);
void replication_free(struct replication *replication);
void replication_clear(struct replication *replication);

/* Replaces the list at `slot`, or (replicas NULL) removes it. */
int replicas_set(struct replicas **slot, const struct replica *replicas, uint32_t count, uint32_t packet_length_bytes);

#endif
