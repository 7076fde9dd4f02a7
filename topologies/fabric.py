"""A fabric: the graph of hosts and switches with its addresses, ports and routes.

Pure networkx: nothing here needs root. Vertices have the attribute `kind` ("node", "store", "switch"),
edges `rate_bit_s` and, once the fabric is built, `ports` {vertex: port number, 1 first}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from topologies.errors import TopologyError

if TYPE_CHECKING:
    import networkx as nx

NODE, STORE, SWITCH = "node", "store", "switch"

# Ports 0..63 fit the waiters' bitmap of the P4 program (WAITER_PORTS in sizes.p4; a test compares).
WAITER_PORTS = 64

LENDERS_APART = 4
"""Links between two nodes that ask one another, at most: with more switches between them than a leaf, a spine
and a leaf, replies would pass others than their requests did."""

_HOSTS = IPv4Address("10.0.0.0")
_CONTROLLERS = IPv4Address("10.255.0.0")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Something with an address: a host, or the controller as a switch sees it."""

    name: str
    ipv4: IPv4Address
    mac: str


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a switch: what is behind it and how fast the link is."""

    number: int
    peer: str
    peer_kind: str
    rate_bit_s: float


@dataclass(frozen=True, slots=True)
class Route:
    """Packets to `destination` leave by `port`, for the MAC address `next_hop`."""

    destination: IPv4Address
    next_hop: str
    port: int


class Fabric:
    """A validated topology. `graph` is not changed any more after construction."""

    def __init__(self, name: str, graph: nx.Graph, requests_first: bool = False) -> None:
        """`requests_first`: every port has a queue for messages without a value, before that of the rest."""
        self.name, self.graph, self.requests_first = name, graph, requests_first
        self._check()
        self._number_ports()

    def with_queues(self, requests_first: bool) -> Fabric:
        """Return the same fabric with one queue at each port, or two."""
        return Fabric(self.name, self.graph, requests_first)

    def with_link_rates(self, rates_bit_s: Mapping[str, float]) -> Fabric:
        """Return the same fabric with other rates of the links of these hosts. Links between switches stay as
        they are."""
        graph = self.graph.copy()  # edges, too, are copies
        for host, rate_bit_s in rates_bit_s.items():
            (edge,) = graph.adj[host].values()
            edge["rate_bit_s"] = rate_bit_s
        return Fabric(self.name, graph, self.requests_first)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Inference nodes, in order of their addresses."""
        return self._of_kind(NODE)

    @cached_property
    def stores(self) -> tuple[str, ...]:
        """Storage nodes, in order of their addresses."""
        return self._of_kind(STORE)

    @property
    def answering(self) -> tuple[str, ...]:
        """Hosts that answer GETs, in order of their addresses: the storage nodes, or where there are none the
        nodes, which lend one another what they hold."""
        return self.stores or self.nodes

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Switches, in order of their device ids (1 first)."""
        return self._of_kind(SWITCH)

    @cached_property
    def hosts(self) -> dict[str, Endpoint]:
        """Return every node and store with its address."""
        return {
            name: Endpoint(name, _HOSTS + index, _mac(0, index))
            for index, name in enumerate(self.nodes + self.stores, 1)
        }

    def controller(self, switch: str) -> Endpoint:
        """Return the address under which `switch` reaches the controller: routed to its CPU port."""
        index = self.device_id(switch)
        return Endpoint(f"controller@{switch}", _CONTROLLERS + index, _mac(1, index))

    def controller_of(self, host: str) -> Endpoint:
        """Return the controller's address at the switch that a host is linked to."""
        (switch,) = self.graph.adj[host]
        return self.controller(switch)

    def device_id(self, switch: str) -> int:
        """Return P4Runtime's device ID."""
        return self.switches.index(switch) + 1

    def ports(self, switch: str) -> tuple[Port, ...]:
        """Return the switch's ports by number."""
        found = [
            Port(edge["ports"][switch], peer, self.graph.nodes[peer]["kind"], edge["rate_bit_s"])
            for peer, edge in self.graph.adj[switch].items()
        ]
        return tuple(sorted(found, key=lambda port: port.number))

    def routes(self, switch: str) -> tuple[Route, ...]:
        """Return where each host, and each other switch's controller address, is from here: shortest
        paths."""
        hosts = (self._route(switch, name, endpoint) for name, endpoint in self.hosts.items())
        others = (
            self._route(switch, name, self.controller(name)) for name in self.switches if name != switch
        )
        return tuple(hosts) + tuple(others)

    def link_rate_bit_s(self, host: str) -> float:
        """Rate of the link that connects `host`."""
        (edge,) = self.graph.adj[host].values()
        return float(edge["rate_bit_s"])

    def _route(self, switch: str, vertex: str, endpoint: Endpoint) -> Route:
        if self.graph.nodes[vertex]["kind"] == STORE:
            next_vertex = self._path_from_store(vertex, switch)[-2]
        elif vertex in self.answering:
            next_vertex = self._between_lenders(switch, vertex)
        else:
            next_vertex = self._next_hop(switch, vertex)
        return Route(endpoint.ipv4, endpoint.mac, self.graph.edges[switch, next_vertex]["ports"][switch])

    def _path_from_store(self, store: str, switch: str) -> list[str]:
        """What a reply passes. Requests take it in reverse: so all requests for one home meet in the same
        switches, where they merge, and the reply comes by where its waiters are noted."""
        path = [store, *self.graph.adj[store]]
        while path[-1] != switch:
            path.append(self._next_hop(path[-1], switch))
        return path

    def _between_lenders(self, switch: str, vertex: str) -> str:
        """Nodes that ask one another take one path in both directions, for the same reason: of the spines
        between them both leaves choose alike."""
        (last,) = self.graph.adj[vertex]
        if switch == last:
            return vertex
        closer = self._closer(switch, last)
        return closer[(self._order[switch] + self._order[last]) % len(closer)]

    def _next_hop(self, switch: str, destination: str) -> str:
        """Towards anything but a host that answers: of equal paths each switch has one of its own, which
        spreads the traffic of the stores behind different switches."""
        closer = self._closer(switch, destination)
        return closer[self._order[switch] % len(closer)]

    def _closer(self, switch: str, destination: str) -> list[str]:
        """Neighbours on the shortest paths, in order."""
        distance = self._distances[destination]
        closer = [str(vertex) for vertex in self.graph.adj[switch] if distance[vertex] < distance[switch]]
        return sorted(closer, key=self._order.__getitem__)

    @cached_property
    def _order(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.graph)}

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        import networkx as nx  # as in _check

        return dict(nx.all_pairs_shortest_path_length(self.graph))

    def _of_kind(self, kind: str) -> tuple[str, ...]:
        return tuple(name for name, data in self.graph.nodes(data=True) if data["kind"] == kind)

    def _check(self) -> None:
        import networkx as nx  # takes long, and only what builds a network needs it

        for kind, what in ((NODE, "inference node"), (SWITCH, "switch")):
            if not self._of_kind(kind):
                raise TopologyError(f"topology {self.name}: needs at least one {what}")
        if not nx.is_connected(self.graph):
            raise TopologyError(f"topology {self.name}: not every host can reach every other")
        if not self.stores and nx.diameter(self.graph) > LENDERS_APART:
            raise TopologyError(
                f"topology {self.name}: needs at least one storage node; nodes lend one another what they "
                "hold over one switch, or over leaves and spines"
            )
        for name, data in self.graph.nodes(data=True):
            degree = self.graph.degree[name]
            if data["kind"] == SWITCH and degree >= WAITER_PORTS:
                raise TopologyError(
                    f"topology {self.name}: switch {name} has {degree} ports; at most {WAITER_PORTS - 1} fit "
                    "the bitmap of ports that wait for a reply. Use fewer hosts, or more switches"
                )
            if data["kind"] != SWITCH and degree != 1:
                raise TopologyError(f"topology {self.name}: host {name} needs exactly one link, has {degree}")
        for one, other, rate_bit_s in self.graph.edges(data="rate_bit_s"):
            if not rate_bit_s > 0:
                raise TopologyError(f"topology {self.name}: link {one}-{other} needs a rate above 0")

    def _number_ports(self) -> None:
        for switch in self.switches:
            for number, edge in enumerate(self.graph.adj[switch].values(), 1):
                edge.setdefault("ports", {})[switch] = number


def _mac(group: int, index: int) -> str:
    """A locally administered address."""
    return f"02:00:00:{group:02x}:{index >> 8:02x}:{index & 0xFF:02x}"
