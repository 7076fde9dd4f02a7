"""Topologies by name."""

from __future__ import annotations

from collections.abc import Callable

from topologies.errors import TopologyError
from topologies.fabric import Fabric
from topologies.star import star

TOPOLOGIES: dict[str, Callable[[int, int, float], Fabric]] = {"star": star}


def make_topology(name: str, nodes: int, stores: int, rate_bit_s: float) -> Fabric:
    """A topology by name; raises TopologyError that lists those that exist."""
    if name not in TOPOLOGIES:
        raise TopologyError(f"no topology {name!r}: choose one of {', '.join(TOPOLOGIES)}")
    return TOPOLOGIES[name](nodes, stores, rate_bit_s)
