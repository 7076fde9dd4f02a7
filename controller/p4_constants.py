"""Constants of the P4 program that the control plane needs.

A test compares them with p4/include/ name by name. What hosts share with the switch (operations,
flags, port) is in `hostlib.protocol.wire`.
"""

from __future__ import annotations

from typing import Final

ROLE_REQUEST: Final = 1
ROLE_REPLY: Final = 2
ROLE_CONTROL: Final = 4
ROLE_TRUNK: Final = 8

CPU_PORT: Final = 510
WAITER_PORTS: Final = 64
MULTICAST_WAITERS: Final = 1

# Index into the counter `outcomes`, one for each packet.
OUTCOME_MALFORMED: Final = 0
OUTCOME_FORBIDDEN: Final = 1
OUTCOME_SPOOFED: Final = 2
OUTCOME_FOREIGN_TENANT: Final = 3
OUTCOME_OVER_REQUESTS: Final = 4
OUTCOME_OVER_SPECIAL: Final = 5
OUTCOME_OVER_CONTROLLER: Final = 6
OUTCOME_NO_ROUTE: Final = 7
OUTCOME_TTL_EXPIRED: Final = 8
OUTCOME_FORWARDED: Final = 9
OUTCOME_SERVED: Final = 10
OUTCOME_CLAIMED: Final = 11
OUTCOME_MERGED: Final = 12
OUTCOME_RETRIED: Final = 13
OUTCOME_UNMERGED: Final = 14
OUTCOME_REPLY: Final = 15
OUTCOME_FANNED_OUT: Final = 16
OUTCOME_FILL_ENDED: Final = 17
OUTCOME_PUT: Final = 18
OUTCOME_REPLICATED: Final = 19
OUTCOME_MESSAGE: Final = 20
OUTCOME_CONTROL: Final = 21
OUTCOME_NOT_RESIDENT: Final = 22
OUTCOME_LOST: Final = 23
OUTCOME_TOLD: Final = 24

OUTCOME_NAMES: Final = tuple(
    name.removeprefix("OUTCOME_").lower()
    for name, _ in sorted(
        ((name, index) for name, index in vars().items() if name.startswith("OUTCOME_")),
        key=lambda item: item[1],
    )
)
"""Their names in reports, in the order of the index."""
SERVED: Final = OUTCOME_NAMES[OUTCOME_SERVED]
MERGED: Final = OUTCOME_NAMES[OUTCOME_MERGED]

# Names in the P4Info.
PORT_ROLES: Final = "ingress.roles.port_role"
PORT_TENANTS: Final = "ingress.tenants.port_tenants"
ROUTES: Final = "ingress.routing.routes"
RECEIVERS: Final = "egress.waiters.receivers"
HOSTS: Final = "egress.waiters.hosts"
STORES: Final = tuple(f"ingress.copies.{place}.stores" for place in ("first", "second", "third"))
"""Three alike: a PUT names up to three homes, and a table is applied once on a packet's way."""
BLOCKS: Final = "ingress.index.blocks"
BLOCK_HITS: Final = "ingress.pool.block_hits"
SLOT_CHECK: Final = "ingress.pool.slot_check"
MISS_SETTINGS: Final = "ingress.misses.settings"
MERGE_SETTINGS: Final = "ingress.in_flight.settings"
OUTCOMES: Final = "ingress.outcomes"
REQUEST_METER: Final = "ingress.limits.requests"
SPECIAL_METER: Final = "ingress.limits.special"
PUT_METER: Final = "ingress.limits.puts"
CONTROLLER_METER: Final = "ingress.controller.to_controller"
HOT_MISS: Final = "hot_miss_t"
SUBSCRIPTION: Final = "subscription_t"
