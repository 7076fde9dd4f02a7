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
    """Way to build a fabric, and its numbers of hosts if none are given."""

    build: Callable[..., Fabric]
    """Function that takes nodes, stores, the rate of a host's link in bit/s, and the sizes named below."""
    nodes: int
    stores: int
    sizes: tuple[str, ...] = ()
    """Names of further sizes that it takes."""


TOPOLOGIES = {
    "star": Topology(star, nodes=8, stores=2),
    "leafspine": Topology(leaf_spine, nodes=16, stores=4, sizes=("leaves", "spines")),
    "tree": Topology(tree, nodes=16, stores=4, sizes=("leaves",)),
    "fattree": Topology(fat_tree, nodes=16, stores=4, sizes=("pods",)),
}


def make_topology(
    name: str, rate_bit_s: float, nodes: int | None = None, stores: int | None = None, **sizes: int
) -> Fabric:
    """Return the topology of that name.

    Raises TopologyError, which lists the topologies there are, or the sizes that this one takes.
    """
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
