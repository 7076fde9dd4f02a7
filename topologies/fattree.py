"""Fat tree of k pods (Al-Fares et al., SIGCOMM 2008).

core    o   o   o   o      (k/2)^2, each reaches every pod
        |   |   |   |
agg    [ ] [ ]  ...        k/2 a pod
        | X |
edge   [ ] [ ]  ...        k/2 a pod, each on every aggregation switch of it
        hosts
"""

from __future__ import annotations

from itertools import chain

from topologies.errors import TopologyError
from topologies.fabric import SWITCH, Fabric
from topologies.leafspine import attach_hosts, connect_up


def fat_tree(nodes: int, stores: int, rate_bit_s: float, pods: int = 4) -> Fabric:
    """Return a fat tree whose hosts are spread evenly over the edge switches of all pods."""
    import networkx as nx  # takes long, and only what builds a network needs it

    if pods < 2 or pods % 2:
        raise TopologyError(f"a fat tree needs an even number of pods, 2 or more, not {pods}")
    half = pods // 2
    graph = nx.Graph()
    edges = [[f"edge{pod}{index}" for index in range(1, half + 1)] for pod in range(1, pods + 1)]
    aggregations = [[name.replace("edge", "agg") for name in names] for names in edges]
    cores = [f"core{index}" for index in range(1, half * half + 1)]
    all_edges = list(chain.from_iterable(edges))
    graph.add_nodes_from([*all_edges, *chain.from_iterable(aggregations), *cores], kind=SWITCH)
    attach_hosts(graph, all_edges, nodes, stores, rate_bit_s)
    for pod in range(pods):
        connect_up(graph, edges[pod], aggregations[pod], rate_bit_s)
        for index, name in enumerate(aggregations[pod]):
            connect_up(graph, [name], cores[index * half : (index + 1) * half], rate_bit_s)
    return Fabric("fattree", graph)
