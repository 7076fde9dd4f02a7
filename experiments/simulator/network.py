"""The fabric: links in both directions between neighbours, and who is the next on the way to whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from experiments.simulator.events import Loop
from experiments.simulator.link import Link
from experiments.simulator.messages import Ask, Put, Reply, Sizes, fragments_of, replies_bytes
from topologies.fabric import Fabric

AT_ONCE_S = 1e-9
"""Waits up to here are rounding: a message that follows another without a gap finds the link free."""


class Vertex(Protocol):
    """What stands at a vertex: messages reach a switch with their head, a host with their tail."""

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """GETs arrive."""

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Replies arrive."""


class Network:
    """Moves messages; vertices are attached before the first is sent.

    GETs and replies go from neighbour to neighbour, since switches act on them. Blocks on their way home only
    pass: as long as they find links free, all of the way is computed at once.
    """

    def __init__(
        self,
        loop: Loop,
        fabric: Fabric,
        sizes: Sizes,
        latency_s: float,
        burst_s: float = 0.0,
        requests_first: bool = False,
    ) -> None:
        """`requests_first`: they and acknowledgements wait for no block; their share of a link is small."""
        self._requests_first = requests_first
        self.fabric = fabric
        self.sizes = sizes
        self.links: dict[tuple[str, str], Link] = {}
        self.vertices: dict[str, Vertex] = {}
        self.keepers: dict[str, Callable[[Put], None]] = {}
        """What storage nodes do with a block that arrives."""
        self._loop = loop
        self._switches = frozenset(fabric.switches)
        self._value_bytes, self._request_bytes = sizes.value_bytes, sizes.request_bytes
        for one, other, rate_bit_s in fabric.graph.edges(data="rate_bit_s"):
            for ends in ((one, other), (other, one)):
                self.links[ends] = Link(f"{ends[0]}->{ends[1]}", rate_bit_s / 8, latency_s, burst_s)
        self._next = _next_hops(fabric)
        self._ways: dict[tuple[str, str], tuple[Link, ...]] = {}

    def next_hop(self, vertex: str, destination: str) -> str:
        """The neighbour on the way from a vertex to a host or switch."""
        return self._next[vertex][destination]

    def ask(self, source: str, target: str, asks: Sequence[Ask], tail_s: float = 0.0) -> None:
        """Send GETs to a neighbour, as one burst."""
        size_bytes = self._request_bytes * fragments_of(asks)
        link = self.links[source, target]
        if self._requests_first:
            tail_s = max(tail_s, self._loop.now + link.pass_by(size_bytes))
            self._loop.at(tail_s, self.vertices[target].asked, asks, source, tail_s)
            return
        passage = link.send(self._loop.now, size_bytes, self._request_bytes, tail_s)
        arrival_s = passage[target not in self._switches]
        self._loop.at(arrival_s, self.vertices[target].asked, asks, source, passage[1])

    def reply(self, source: str, target: str, replies: Sequence[Reply], tail_s: float = 0.0) -> None:
        """Send replies to a neighbour, one behind the other."""
        size_bytes = replies_bytes(replies, self._value_bytes, self._request_bytes)
        passage = self.links[source, target].send(self._loop.now, size_bytes, self._value_bytes, tail_s)
        arrival_s = passage[target not in self._switches]
        self._loop.at(arrival_s, self.vertices[target].replied, replies, source, passage[1])

    def put(self, source: str, put: Put, tail_s: float = 0.0) -> None:
        """Send a block all the way to its home."""
        self._pass(self._way(source, put.block.home), 0, put, tail_s)

    def acknowledge(self, store: str, sender: str, fragments: int) -> float:
        """Send acknowledgements all the way; the time at which the last arrives."""
        now_s, tail_s = self._loop.now, 0.0
        size_bytes = fragments * self._request_bytes
        for link in self._way(store, sender):
            if self._requests_first:
                tail_s = max(tail_s, now_s) + link.pass_by(size_bytes)
            else:
                _, tail_s = link.send(now_s, size_bytes, self._request_bytes, tail_s)
        return tail_s

    def _pass(self, way: Sequence[Link], first: int, put: Put, tail_s: float) -> None:
        """Over the links from `first` on, up to one where it has to wait for its turn."""
        head_s, size_bytes = self._loop.now, put.fragments * self._value_bytes
        for place in range(first, len(way)):
            link = way[place]
            waits = link.free_s > head_s + AT_ONCE_S
            head_s, tail_s = link.send(head_s, size_bytes, self._value_bytes, tail_s)
            if waits and place + 1 < len(way):
                self._loop.at(head_s, self._pass, way, place + 1, put, tail_s)
                return
        self._loop.at(tail_s, self.keepers[put.block.home], put)

    def _way(self, source: str, destination: str) -> tuple[Link, ...]:
        """The links from one vertex to another."""
        way = self._ways.get((source, destination))
        if way is None:
            links, vertex = [], source
            while vertex != destination:
                neighbour = self._next[vertex][destination]
                links.append(self.links[vertex, neighbour])
                vertex = neighbour
            way = self._ways[source, destination] = tuple(links)
        return way


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
