"""Leaf and spine: hosts on leaves, every leaf on every spine.

    spine1        spine2
   /   |   `------. | `------.
  /  ,-|------------'  `---.  |
leaf1  leaf2         leaf3 ...
|   |  |    |        |   |
node1  node2 store1  node3 ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topologies.errors import TopologyError
from topologies.fabric import NODE, STORE, SWITCH, Fabric

if TYPE_CHECKING:
    import networkx as nx


def leaf_spine(nodes: int, stores: int, rate_bit_s: float, leaves: int = 4, spines: int = 2) -> Fabric:
    """Return a leaf-spine whose hosts are spread evenly over the leaves.

    A leaf's uplinks together carry what its hosts can send. Without storage nodes, two or more nodes lend
    each other their DRAM.
    """
    import networkx as nx  # takes long, and only what builds a network needs it

    if min(nodes, leaves, spines) < 1 or stores < 0 or nodes + stores < 2:
        raise TopologyError(
            "a leaf-spine needs at least 1 leaf, 1 spine and 1 node and 1 store, or 2 nodes and none, not "
            f"{leaves} and {spines}, {nodes} and {stores}"
        )
    graph = nx.Graph()
    leaf_names = [f"leaf{index}" for index in range(1, leaves + 1)]
    spine_names = [f"spine{index}" for index in range(1, spines + 1)]
    graph.add_nodes_from(leaf_names + spine_names, kind=SWITCH)
    attach_hosts(graph, leaf_names, nodes, stores, rate_bit_s)
    connect_up(graph, leaf_names, spine_names, rate_bit_s)
    return Fabric("leafspine", graph)


def tree(nodes: int, stores: int, rate_bit_s: float, leaves: int = 4) -> Fabric:
    """Return a tree of two levels: a leaf-spine whose only spine is the root."""
    import networkx as nx  # as in leaf_spine

    fabric = leaf_spine(nodes, stores, rate_bit_s, leaves, spines=1)
    return Fabric("tree", nx.relabel_nodes(fabric.graph, {"spine1": "root"}))


def attach_hosts(
    graph: nx.Graph, switches: Sequence[str], nodes: int, stores: int, rate_bit_s: float
) -> None:
    """Add hosts with their links; the numbers of hosts of a kind on two switches differ by at most one."""
    for kind, count in ((NODE, nodes), (STORE, stores)):
        for index in range(count):
            name = f"{kind}{index + 1}"
            graph.add_node(name, kind=kind)
            graph.add_edge(name, switches[index * len(switches) // count], rate_bit_s=rate_bit_s)


def connect_up(graph: nx.Graph, lower: Sequence[str], upper: Sequence[str], rate_bit_s: float) -> None:
    """Link each lower switch to each upper one.

    A switch's uplinks together are at least as fast as all its links below. Each uplink is at least as fast
    as the fastest of those, because a storage node's replies take one path. `rate_bit_s` counts only if no
    switch has links below it.
    """
    below = {name: [rate for _, _, rate in graph.edges(name, data="rate_bit_s")] for name in lower}
    rates = {name: max(sum(links) / len(upper), *links) for name, links in below.items() if links}
    fallback = max(rates.values(), default=rate_bit_s)
    for one in lower:
        for other in upper:
            graph.add_edge(one, other, rate_bit_s=rates.get(one, fallback))
