"""Fabric: the graph of hosts and switches with its addresses, ports and routes.

Only networkx is used: nothing here needs root. Vertices have the attribute `kind` ("node", "store",
"switch"). Edges have `rate_bit_s` and, once the fabric is built, `ports` {vertex: port number, 1 first}.
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

# Ports 0..63 fit the P4 program's bitmap of waiting ports (WAITER_PORTS in sizes.p4; a test compares).
WAITER_PORTS = 64

LENDERS_APART = 4
"""Largest number of links between two nodes that fetch from each other: node, leaf, spine, leaf, node. With
more switches in between, replies would take another path than their requests."""

_HOSTS = IPv4Address("10.0.0.0")
_CONTROLLERS = IPv4Address("10.255.0.0")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Host, or controller as a switch sees it, with its address."""

    name: str
    ipv4: IPv4Address
    mac: str


@dataclass(frozen=True, slots=True)
class Port:
    """Port of a switch: its number, what is behind it, and the link's rate."""

    number: int
    peer: str
    peer_kind: str
    rate_bit_s: float


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a switch: packets to `destination` leave by `port`, for the MAC address `next_hop`."""

    destination: IPv4Address
    next_hop: str
    port: int


class Fabric:
    """Validated topology. `graph` does not change after construction."""

    def __init__(self, name: str, graph: nx.Graph, requests_first: bool = False) -> None:
        """Build the fabric of a graph; raises TopologyError if it can't be a network.

        With `requests_first`, every port sends messages without a value from a queue of their own, before all
        others.
        """
        self.name, self.graph, self.requests_first = name, graph, requests_first
        self._check()
        self._number_ports()

    def with_queues(self, requests_first: bool) -> Fabric:
        """Return the same fabric with `requests_first` set: two queues at each port if True, else one."""
        return Fabric(self.name, self.graph, requests_first)

    def with_link_rates(self, rates_bit_s: Mapping[str, float]) -> Fabric:
        """Return the same fabric with other rates for the links of these hosts, in bit/s.

        Links between switches keep their rates.
        """
        graph = self.graph.copy()  # copies the edges, too
        for host, rate_bit_s in rates_bit_s.items():
            (edge,) = graph.adj[host].values()
            edge["rate_bit_s"] = rate_bit_s
        return Fabric(self.name, graph, self.requests_first)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Return the inference nodes, in order of their addresses."""
        return self._of_kind(NODE)

    @cached_property
    def stores(self) -> tuple[str, ...]:
        """Return the storage nodes, in order of their addresses."""
        return self._of_kind(STORE)

    @property
    def answering(self) -> tuple[str, ...]:
        """Return the hosts that answer GETs, in order of their addresses.

        These are the storage nodes or, if there are none, the nodes, which lend each other their DRAM.
        """
        return self.stores or self.nodes

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Return the switches, in order of their device IDs (1 first)."""
        return self._of_kind(SWITCH)

    @cached_property
    def hosts(self) -> dict[str, Endpoint]:
        """Return every node and storage node with its address."""
        return {
            name: Endpoint(name, _HOSTS + index, _mac(0, index))
            for index, name in enumerate(self.nodes + self.stores, 1)
        }

    def controller(self, switch: str) -> Endpoint:
        """Return the address under which `switch` reaches the controller: it is routed to the CPU port."""
        index = self.device_id(switch)
        return Endpoint(f"controller@{switch}", _CONTROLLERS + index, _mac(1, index))

    def controller_of(self, host: str) -> Endpoint:
        """Return the controller's address at the switch that `host` is linked to."""
        (switch,) = self.graph.adj[host]
        return self.controller(switch)

    def device_id(self, switch: str) -> int:
        """Return P4Runtime's ID of the switch."""
        return self.switches.index(switch) + 1

    def ports(self, switch: str) -> tuple[Port, ...]:
        """Return the switch's ports by number."""
        found = [
            Port(edge["ports"][switch], peer, self.graph.nodes[peer]["kind"], edge["rate_bit_s"])
            for peer, edge in self.graph.adj[switch].items()
        ]
        return tuple(sorted(found, key=lambda port: port.number))

    def routes(self, switch: str) -> tuple[Route, ...]:
        """Return routes on shortest paths to each host, and to the controller's address at each other
        switch."""
        hosts = (self._route(switch, name, endpoint) for name, endpoint in self.hosts.items())
        others = (
            self._route(switch, name, self.controller(name)) for name in self.switches if name != switch
        )
        return tuple(hosts) + tuple(others)

    def link_rate_bit_s(self, host: str) -> float:
        """Return the rate of the link of `host`, in bit/s."""
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
        """Return the path of a reply from `store` to `switch`; requests take it in reverse.

        All requests for one home thus meet in the same switches, where they merge, and its replies pass the
        switches that have noted who waits.
        """
        path = [store, *self.graph.adj[store]]
        while path[-1] != switch:
            path.append(self._next_hop(path[-1], switch))
        return path

    def _between_lenders(self, switch: str, vertex: str) -> str:
        """Return the next hop from `switch` to a node that lends its DRAM.

        Both leaves choose the same one of the spines between them. Requests and replies thus take one path,
        for the same reason as in `_path_from_store`.
        """
        (last,) = self.graph.adj[vertex]
        if switch == last:
            return vertex
        closer = self._closer(switch, last)
        return closer[(self._order[switch] + self._order[last]) % len(closer)]

    def _next_hop(self, switch: str, destination: str) -> str:
        """Return the next hop to a vertex that answers no GETs, or on the path from a storage node.

        Of equal paths each switch chooses its own, which spreads the traffic of stores behind different
        switches.
        """
        closer = self._closer(switch, destination)
        return closer[self._order[switch] % len(closer)]

    def _closer(self, switch: str, destination: str) -> list[str]:
        """Return the neighbours on shortest paths to `destination`, in the graph's order."""
        distance = self._distances[destination]
        closer = [str(vertex) for vertex in self.graph.adj[switch] if distance[vertex] < distance[switch]]
        return sorted(closer, key=self._order.__getitem__)

    @cached_property
    def _order(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.graph)}

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        import networkx as nx  # imported here as in _check

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
    """Return a locally administered MAC address."""
    return f"02:00:00:{group:02x}:{index >> 8:02x}:{index & 0xFF:02x}"
