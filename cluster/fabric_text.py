"""A fabric as a message carries it: its graph, whose order gives ports, addresses and routes."""

from __future__ import annotations

from typing import Any

from topologies.fabric import Fabric


def to_message(fabric: Fabric) -> dict[str, Any]:
    """Return a fabric as a message, which `from_message` reads."""
    return {
        "name": fabric.name,
        "requests_first": fabric.requests_first,
        "vertices": [[name, data["kind"]] for name, data in fabric.graph.nodes(data=True)],
        "links": [
            [one, other, data["rate_bit_s"], data["ports"]]
            for one, other, data in fabric.graph.edges(data=True)
        ],
    }


def from_message(message: dict[str, Any]) -> Fabric:
    """Return the fabric of a message; raises KeyError, ValueError or TopologyError if it has none."""
    import networkx as nx  # takes long, and only what builds a network needs it

    graph = nx.Graph()
    for name, kind in message["vertices"]:
        graph.add_node(name, kind=kind)
    for one, other, rate_bit_s, ports in message["links"]:
        graph.add_edge(one, other, rate_bit_s=float(rate_bit_s), ports=dict(ports))
    return Fabric(message["name"], graph, message["requests_first"])
