"""Placement: which of the switches that a block passes on its way keep it in their pools. Pure.

A value passes the switch of its home, perhaps others, and the switch of the node that asked. Kept near the
readers (leaf) it spares every link behind it, but each leaf needs a copy of its own; kept where the ways from
all leaves join (spine), one copy serves all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controller.config import AUTO, EVERYWHERE, LEAF, SwitchConfig

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from controller.operations import HotMiss

READERS_TOGETHER: Final = 2
"""Nodes of one leaf that wait for a block together, from which on it gets a copy of its own (auto)."""


@dataclass(frozen=True, slots=True)
class View:
    """Hosts at a switch's ports."""

    node_ports: frozenset[int]
    stores: frozenset[IPv4Address]

    @classmethod
    def of(cls, switch: SwitchConfig) -> View:
        """Return the view of a switch, from its configuration."""
        return cls(
            frozenset(port.port for port in switch.ports if port.role == "node"),
            frozenset(port.host.ipv4 for port in switch.ports if port.role == "store" and port.host),
        )


def admits(placement: str, view: View, miss: HotMiss) -> bool:
    """Return whether this switch should keep the block that it reports."""
    if placement == EVERYWHERE:
        return True
    if not view.node_ports and not view.stores:
        return placement != LEAF
    readers = sum(miss.waiters >> port & 1 for port in view.node_ports)
    if not miss.waiters:
        readers = min(1, len(view.node_ports))  # without merging nobody is noted: one who asks is likely here
    if miss.home in view.stores or placement == LEAF:
        return readers > 0
    return placement == AUTO and readers >= READERS_TOGETHER
