"""The fabric: links in both directions between neighbours, and who is the next on the way to whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from experiments.simulator.events import Loop
from experiments.simulator.link import Link
from experiments.simulator.messages import Ask, Put, Reply, Sizes, replies_bytes
from topologies.fabric import Fabric


class Vertex(Protocol):
    """What stands at a vertex: messages reach a switch with their head, a host with their tail."""

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """GETs arrive."""

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Replies arrive."""

    def put(self, put: Put, neighbour: str, tail_s: float) -> None:
        """A block arrives."""


class Network:
    """Moves messages between neighbours; vertices are attached before the first is sent."""

    def __init__(
        self, loop: Loop, fabric: Fabric, sizes: Sizes, latency_s: float, burst_s: float = 0.0
    ) -> None:
        self.fabric = fabric
        self.sizes = sizes
        self.links: dict[tuple[str, str], Link] = {}
        self.vertices: dict[str, Vertex] = {}
        self._loop = loop
        self._switches = frozenset(fabric.switches)
        self._value_bytes, self._request_bytes = sizes.value_bytes, sizes.request_bytes
        for one, other, rate_bit_s in fabric.graph.edges(data="rate_bit_s"):
            for ends in ((one, other), (other, one)):
                self.links[ends] = Link(f"{ends[0]}->{ends[1]}", rate_bit_s / 8, latency_s, burst_s)
        self._next = _next_hops(fabric)

    def next_hop(self, vertex: str, destination: str) -> str:
        """The neighbour on the way from a vertex to a host or switch."""
        return self._next[vertex][destination]

    def ask(self, source: str, target: str, asks: Sequence[Ask], tail_s: float = 0.0) -> None:
        """Send GETs to a neighbour, as one burst."""
        size_bytes = self._request_bytes * sum(ask.fragments for ask in asks)
        self._send(source, target, size_bytes, self._request_bytes, tail_s, self.vertices[target].asked, asks)

    def reply(self, source: str, target: str, replies: Sequence[Reply], tail_s: float = 0.0) -> None:
        """Send replies to a neighbour, one behind the other."""
        size_bytes = replies_bytes(replies, self._value_bytes, self._request_bytes)
        deliver = self.vertices[target].replied
        self._send(source, target, size_bytes, self._value_bytes, tail_s, deliver, replies)

    def put(self, source: str, target: str, put: Put, tail_s: float = 0.0) -> None:
        """Send a block to a neighbour."""
        size_bytes = put.fragments * self._value_bytes
        self._send(source, target, size_bytes, self._value_bytes, tail_s, self.vertices[target].put, put)

    def acknowledge(self, store: str, sender: str, fragments: int) -> float:
        """Send acknowledgements all the way; the time at which the last arrives."""
        now_s, tail_s, vertex = self._loop.now, 0.0, store
        while vertex != sender:
            neighbour = self.next_hop(vertex, sender)
            link = self.links[vertex, neighbour]
            tail_s = link.send(now_s, fragments * self._request_bytes, self._request_bytes, tail_s).tail_s
            vertex = neighbour
        return tail_s

    def _send(
        self,
        source: str,
        target: str,
        size_bytes: float,
        head_bytes: float,
        tail_s: float,
        deliver: Callable[..., None],
        payload: object,
    ) -> None:
        now_s = self._loop.now
        passage = self.links[source, target].send(now_s, size_bytes, head_bytes, tail_s)
        arrival_s = passage.head_s if target in self._switches else passage.tail_s
        self._loop.after(arrival_s - now_s, deliver, payload, source, passage.tail_s)


def _next_hops(fabric: Fabric) -> dict[str, dict[str, str]]:
    """vertex -> destination -> neighbour, as the fabric's routes say."""
    named = {endpoint.ipv4: name for name, endpoint in fabric.hosts.items()}
    named |= {fabric.controller(switch).ipv4: switch for switch in fabric.switches}
    table: dict[str, dict[str, str]] = {}
    for switch in fabric.switches:
        peers = {port.number: port.peer for port in fabric.ports(switch)}
        table[switch] = {named[route.destination]: peers[route.port] for route in fabric.routes(switch)}
    for host in fabric.hosts:
        (neighbour,) = fabric.graph.adj[host]
        table[host] = dict.fromkeys((*fabric.hosts, *fabric.switches), neighbour)
    return table
