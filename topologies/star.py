"""Star: every host on one switch.

node1 ─┐       ┌─ store1
node2 ─┼─ s1 ──┤
  ...  ┘       └─ store2
"""

from __future__ import annotations

from topologies.errors import TopologyError
from topologies.fabric import NODE, STORE, SWITCH, WAITER_PORTS, Fabric


def star(nodes: int, stores: int, rate_bit_s: float) -> Fabric:
    """Return a star of inference and storage nodes on one switch, whose links all have the same rate.

    Without storage nodes, two or more nodes lend each other their DRAM.
    """
    import networkx as nx  # takes long, and only what builds a network needs it

    if nodes < 1 or stores < 0 or nodes + stores < 2:
        raise TopologyError(
            f"a star needs at least 1 node and 1 store, or 2 nodes and none, not {nodes} and {stores}"
        )
    if nodes + stores >= WAITER_PORTS:
        most = WAITER_PORTS - 1
        raise TopologyError(
            f"a star has {most} ports at most: beside {stores} storage nodes (STORES) {most - stores} nodes "
            f"(HOSTS), not {nodes}. Use TOPO=leafspine for more"
        )
    graph = nx.Graph()
    graph.add_node("s1", kind=SWITCH)
    for kind, count in ((NODE, nodes), (STORE, stores)):
        for index in range(1, count + 1):
            graph.add_node(f"{kind}{index}", kind=kind)
            graph.add_edge(f"{kind}{index}", "s1", rate_bit_s=rate_bit_s)
    return Fabric("star", graph)
