"""Topologies by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topologies.errors import TopologyError
from topologies.fabric import Fabric
from topologies.fattree import fat_tree
from topologies.leafspine import leaf_spine, tree
from topologies.star import star


@dataclass(frozen=True, slots=True)
class Topology:
    """A way to build a fabric, and the number of hosts it has when none is asked for."""

    build: Callable[..., Fabric]
    """Called with nodes, stores, the rate of a host's link, and the sizes named below."""
    nodes: int
    stores: int
    sizes: tuple[str, ...] = ()
    """Further sizes that it takes."""


TOPOLOGIES = {
    "star": Topology(star, nodes=8, stores=2),
    "leafspine": Topology(leaf_spine, nodes=16, stores=4, sizes=("leaves", "spines")),
    "tree": Topology(tree, nodes=16, stores=4, sizes=("leaves",)),
    "fattree": Topology(fat_tree, nodes=16, stores=4, sizes=("pods",)),
}


def make_topology(
    name: str, rate_bit_s: float, nodes: int | None = None, stores: int | None = None, **sizes: int
) -> Fabric:
    """Return the topology of that name; raises TopologyError that lists those that exist, or the sizes it
    takes."""
    if name not in TOPOLOGIES:
        raise TopologyError(f"no topology {name!r}: choose one of {', '.join(TOPOLOGIES)}")
    topology = TOPOLOGIES[name]
    for size in sizes:
        if size not in topology.sizes:
            takes = ", ".join(topology.sizes) or "no further sizes"
            raise TopologyError(f"topology {name} has no {size}: it takes {takes}")
    return topology.build(
        topology.nodes if nodes is None else nodes,
        topology.stores if stores is None else stores,
        rate_bit_s,
        **sizes,
    )
