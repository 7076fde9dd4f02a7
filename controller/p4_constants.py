"""Constants of the P4 program that the control plane needs.

A test compares them with p4/include/ name by name. What hosts share with the switch (operations,
flags, port) is in `hostlib.wire`.
"""

from __future__ import annotations

from typing import Final

ROLE_REQUEST: Final = 1
ROLE_REPLY: Final = 2
ROLE_CONTROL: Final = 4

CPU_PORT: Final = 510
WAITER_PORTS: Final = 64
MULTICAST_WAITERS: Final = 1

# Index into the counter `outcomes`, one for each packet.
OUTCOME_MALFORMED: Final = 0
OUTCOME_FORBIDDEN: Final = 1
OUTCOME_NO_ROUTE: Final = 2
OUTCOME_TTL_EXPIRED: Final = 3
OUTCOME_FORWARDED: Final = 4
OUTCOME_SERVED: Final = 5
OUTCOME_CLAIMED: Final = 6
OUTCOME_MERGED: Final = 7
OUTCOME_RETRIED: Final = 8
OUTCOME_UNMERGED: Final = 9
OUTCOME_REPLY: Final = 10
OUTCOME_FANNED_OUT: Final = 11
OUTCOME_FILL_ENDED: Final = 12
OUTCOME_PUT: Final = 13
OUTCOME_CONTROL: Final = 14
OUTCOME_NOT_RESIDENT: Final = 15
OUTCOME_LOST: Final = 16

OUTCOME_NAMES: Final = tuple(
    name.removeprefix("OUTCOME_").lower()
    for name, _ in sorted(
        ((name, index) for name, index in vars().items() if name.startswith("OUTCOME_")),
        key=lambda item: item[1],
    )
)
"""Their names in reports, in the order of the index."""

# Names in the P4Info.
PORT_ROLES: Final = "ingress.roles.port_role"
ROUTES: Final = "ingress.routing.routes"
HOSTS: Final = "egress.waiters.hosts"
BLOCKS: Final = "ingress.index.blocks"
BLOCK_HITS: Final = "ingress.index.block_hits"
SLOT_GENERATION: Final = "ingress.pool.slot_generation"
MISS_SETTINGS: Final = "ingress.misses.settings"
MERGE_SETTINGS: Final = "ingress.in_flight.settings"
OUTCOMES: Final = "ingress.outcomes"
HOT_MISS: Final = "hot_miss_t"
SUBSCRIPTION: Final = "subscription_t"
