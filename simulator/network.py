"""Fabric of a simulation: links in both directions between neighbours, and the next hop to each vertex."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from simulator.events import Loop
from simulator.link import Link, send_at_once, send_through
from simulator.messages import Ask, Put, Reply, Sizes, fragments_of, replies_bytes
from topologies.fabric import Fabric


class Vertex(Protocol):
    """Host or switch at a vertex: messages reach a switch with their head, a host with their tail."""

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        """Take GETs that arrive."""

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        """Take replies that arrive."""


class PutTaker(Protocol):
    """Switch that keeps what PUTs carry past it."""

    def passes(self, put: Put) -> None:
        """Take a PUT that is on its way to its home."""

    def made(self, put: Put) -> None:
        """Note that the PUT has made its home hold the block."""


class Port:
    """Way of a vertex to a neighbour."""

    __slots__ = ("_link", "_loop", "_requests_first", "_sizes", "_source", "_whole", "asked", "replied")

    def __init__(
        self, loop: Loop, link: Link, sizes: Sizes, source: str, whole: bool, requests_first: bool
    ) -> None:
        """Make the port of a link; with `whole`, messages reach the neighbour with their last bit."""
        self.asked: Callable[[Sequence[Ask], str, float], None]
        self.replied: Callable[[Sequence[Reply], str, float], None]
        """Functions of the neighbour that take requests and replies; set when it is attached."""
        self._loop, self._link, self._source = loop, link, source
        self._sizes = sizes.request_bytes, sizes.value_bytes
        self._whole, self._requests_first = whole, requests_first

    def ask(self, asks: Sequence[Ask], tail_s: float = 0.0) -> None:
        """Send GETs as one burst."""
        loop, link, head_bytes = self._loop, self._link, self._sizes[0]
        size_bytes = head_bytes * (asks[0].fragments if len(asks) == 1 else fragments_of(asks))
        if self._requests_first:
            tail_s = max(tail_s, loop.now + link.pass_by(size_bytes))
            loop.at(tail_s, self.asked, asks, self._source, tail_s)
            return
        head_s, tail_s = link.send(loop.now, size_bytes, head_bytes, tail_s)
        loop.at(tail_s if self._whole else head_s, self.asked, asks, self._source, tail_s)

    def reply(self, replies: Sequence[Reply], tail_s: float = 0.0) -> None:
        """Send replies, one behind the other."""
        loop, (request_bytes, value_bytes) = self._loop, self._sizes
        size_bytes = replies_bytes(replies, value_bytes, request_bytes)
        head_s, tail_s = self._link.send(loop.now, size_bytes, value_bytes, tail_s)
        loop.at(tail_s if self._whole else head_s, self.replied, replies, self._source, tail_s)


class Network:
    """Network that moves messages; vertices are attached before the first one is sent.

    GETs and replies go from neighbour to neighbour, since switches act on them. Blocks on their way home only
    pass: as long as they find links free, their whole way is computed at once.
    """

    def __init__(
        self,
        loop: Loop,
        fabric: Fabric,
        sizes: Sizes,
        latency_s: float,
        requests_first: bool = False,
    ) -> None:
        """Make the links and ports of a fabric.

        With `requests_first`, requests and acknowledgements wait for no block; their share of a link is
        small.
        """
        self._requests_first = requests_first
        self.fabric = fabric
        self.sizes = sizes
        self.links: dict[tuple[str, str], Link] = {}
        self.keepers: dict[str, Callable[[Put], None]] = {}
        """Functions of storage nodes that take a block that arrives."""
        self._takers: dict[Link, PutTaker] = {}
        """Switches that take PUTs, by each link that begins at them."""
        self._loop = loop
        self._value_bytes, self._request_bytes = sizes.value_bytes, sizes.request_bytes
        for one, other, rate_bit_s in fabric.graph.edges(data="rate_bit_s"):
            for ends in ((one, other), (other, one)):
                self.links[ends] = self._link(f"{ends[0]}->{ends[1]}", rate_bit_s / 8, latency_s)
        switches = frozenset(fabric.switches)
        self.ports = {
            (source, target): Port(loop, link, sizes, source, target not in switches, requests_first)
            for (source, target), link in self.links.items()
        }
        self._next = _next_hops(fabric)
        self._ways: dict[str, dict[str, tuple[Link, ...]]] = {vertex: {} for vertex in self._next}

    def _link(self, name: str, bytes_per_s: float, latency_s: float) -> Link:
        """Make a link in one direction between neighbours."""
        return Link(name, bytes_per_s, latency_s)

    def next_hop(self, vertex: str, destination: str) -> str:
        """Return the neighbour on the way from a vertex to a host or switch."""
        return self._next[vertex][destination]

    def access(self, host: str) -> tuple[Port, Link]:
        """Return a host's port and link to its switch."""
        switch = self.next_hop(host, self.fabric.switches[0])
        return self.ports[host, switch], self.links[host, switch]

    def attach(self, name: str, vertex: Vertex) -> None:
        """Let `vertex` take the messages to the vertex `name` from now on."""
        for neighbour in self.fabric.graph.adj[name]:
            port = self.ports[neighbour, name]
            port.asked, port.replied = vertex.asked, vertex.replied

    def ports_of(self, vertex: str) -> Mapping[str, Port]:
        """Return a vertex's ports: by neighbour, and by every host and switch that they lead to."""
        return {to: self.ports[vertex, via] for to, via in self._next[vertex].items()} | {
            neighbour: self.ports[vertex, neighbour] for neighbour in self.fabric.graph.adj[vertex]
        }

    def take_puts(self, switch: str, taker: PutTaker) -> None:
        """Show a switch the PUTs that pass it, and their homes' acknowledgements, from now on."""
        for neighbour in self.fabric.graph.adj[switch]:
            self._takers[self.links[switch, neighbour]] = taker

    def put(self, source: str, put: Put, tail_s: float = 0.0) -> None:
        """Send a block all the way to its home."""
        self._pass(self._way(source, put.block.home), 0, put, tail_s)

    def acknowledge(self, store: str, sender: str, fragments: int) -> float:
        """Send acknowledgements all the way; return the time at which the last arrives."""
        now_s, tail_s = self._loop.now, 0.0
        size_bytes, way = fragments * self._request_bytes, self._way(store, sender)
        if not self._requests_first:
            return send_at_once(way, now_s, size_bytes)
        for link in way:
            tail_s = max(tail_s, now_s) + link.pass_by(size_bytes)
        return tail_s

    def say_made(self, put: Put) -> None:
        """Show switches the acknowledgement, just sent, of a PUT that has made its home hold the block.

        It leaves the home behind what waits there. All switches on the way see it when it reaches the first:
        the others see it too early by the latency between switches.
        """
        if not self._takers:
            return
        way = self._way(put.block.home, put.sender)
        passes_s = way[0].latency_s
        if not self._requests_first:
            passes_s += way[0].wait_s(self._loop.now)
        for link in way[1:]:
            taker = self._takers.get(link)
            if taker is not None:
                self._loop.after(passes_s, taker.made, put)

    def _show(self, link: Link, put: Put) -> None:
        """Show a PUT to the switch at which a link begins, if it takes PUTs.

        As far as links are free, all switches see it when it begins to pass them: too early by the latency
        and one fragment of each.
        """
        taker = self._takers.get(link)
        if taker is not None:
            taker.passes(put)

    def _pass(self, way: Sequence[Link], first: int, put: Put, tail_s: float) -> None:
        """Send a PUT over the links from `first` on, up to one where it has to wait for its turn."""
        loop, value_bytes = self._loop, self._value_bytes
        size_bytes = put.fragments * value_bytes
        place, head_s, tail_s = send_through(way, first, loop.now, size_bytes, value_bytes, tail_s)
        if self._takers:
            for link in way[first : place + 1]:
                self._show(link, put)
        if place + 1 < len(way):
            loop.at(head_s, self._pass, way, place + 1, put, tail_s)
        else:
            loop.at(tail_s, self.keepers[put.block.home], put)

    def _way(self, source: str, destination: str) -> tuple[Link, ...]:
        """Return the links from one vertex to another."""
        ways = self._ways[source]
        way = ways.get(destination)
        if way is None:
            links, vertex = [], source
            while vertex != destination:
                neighbour = self._next[vertex][destination]
                links.append(self.links[vertex, neighbour])
                vertex = neighbour
            way = ways[destination] = tuple(links)
        return way


def _next_hops(fabric: Fabric) -> dict[str, dict[str, str]]:
    """Return the neighbours by vertex and destination, as in the fabric's routes."""
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
