"""The networks of the simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from experiments.simulate_faults.plan import LEAF_SPINE, LENDING, NODES, RACKS, STAR, STORES
from topologies.fabric import SWITCH, Fabric
from topologies.leafspine import attach_hosts, connect_up, leaf_spine
from topologies.star import star

if TYPE_CHECKING:
    from collections.abc import Callable

LINK_BIT_S: Final = 160e6
"""Says only how many requests a second a switch lets through: about as many as by default."""


def racks() -> Fabric:
    """Return two leaves with nodes and one with the storage nodes, below a spine. What a node of one leaf has
    deleted passes no switch of the other one's."""
    import networkx as nx  # takes long, and only what builds a network needs it

    graph = nx.Graph()
    leaves, spines = ["leaf1", "leaf2", "leaf3"], ["spine1"]
    graph.add_nodes_from(leaves + spines, kind=SWITCH)
    attach_hosts(graph, leaves[:2], NODES, 0, LINK_BIT_S)
    attach_hosts(graph, leaves[2:], 0, STORES, LINK_BIT_S)
    connect_up(graph, leaves, spines, LINK_BIT_S)
    return Fabric(RACKS, graph)


FABRICS: Final[dict[str, Callable[[], Fabric]]] = {
    STAR: lambda: star(NODES, STORES, LINK_BIT_S),
    LEAF_SPINE: lambda: leaf_spine(NODES, STORES, LINK_BIT_S, leaves=2, spines=2),
    RACKS: racks,
    LENDING: lambda: leaf_spine(NODES, 0, LINK_BIT_S, leaves=2, spines=2),
}
"""Fabrics by their names in plans. Of two spines, each is passed by the replies of one leaf's storage nodes.
"""
