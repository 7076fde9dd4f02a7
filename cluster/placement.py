"""Placement of hosts and switches on servers.

Each server gets work by its cores. A leaf and its hosts stay together if one server can carry them, and as
little of the links' rates as possible crosses between servers. Traffic that crosses goes through a tunnel,
which costs both servers CPU and may be slower than the link. A star's hosts can't all stay with their switch:
they are spread one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from topologies.fabric import SWITCH, Fabric

SWITCH_LOAD: Final = 1.7
"""CPU that a switch takes for the traffic of a link, relative to what a host takes for the same.

With 8 and 32 nodes a fragment costs the switch 56 and 41 us for two links, and both hosts 30 us
(docs/emulation.md).
"""
TOLERANCE: Final = 0.1
"""Share of its load that a server may carry above its part, if less traffic crosses then."""
MOST_SWAPPED: Final = 128
"""Number of units above which only moves are tried: swaps would take long, and small units can be moved."""
_ROUNDS: Final = 20


@dataclass(frozen=True)
class Placement:
    """A fabric and the server of each of its hosts and switches."""

    fabric: Fabric
    server_of: Mapping[str, str]
    """Server of each host and switch."""
    load_share: Mapping[str, float]
    """Share of the fabric's CPU time that each server carries; the shares add up to 1."""

    def on(self, server: str) -> frozenset[str]:
        """Return the hosts and switches of a server."""
        return frozenset(name for name, where in self.server_of.items() if where == server)

    @property
    def crossing(self) -> tuple[tuple[str, str], ...]:
        """Return the links whose ends are on two servers."""
        edges = self.fabric.graph.edges
        return tuple((one, other) for one, other in edges if self.server_of[one] != self.server_of[other])

    def crossing_bit_s(self) -> dict[tuple[str, str], float]:
        """Return the summed link rates, one way, between each two servers (names in order), in bit/s."""
        rates: dict[tuple[str, str], float] = {}
        for one, other in self.crossing:
            first, second = sorted((self.server_of[one], self.server_of[other]))
            rate_bit_s = float(self.fabric.graph.edges[one, other]["rate_bit_s"])
            rates[first, second] = rates.get((first, second), 0.0) + rate_bit_s
        return rates


def place(fabric: Fabric, cores: Mapping[str, float]) -> Placement:
    """Place a fabric on servers in proportion to their cores."""
    loads = {name: _load(fabric, name) for name in fabric.graph}
    total = sum(loads.values())
    shares = {server: total * each / sum(cores.values()) for server, each in cores.items()}
    units = _units(fabric, loads, max(shares.values()))
    found = _Search(fabric, loads, units, shares).best()
    carried = {
        server: sum(loads[name] for name, where in found.items() if where == server) / total
        for server in cores
    }
    return Placement(fabric, found, carried)


def _load(fabric: Fabric, name: str) -> float:
    rate = sum(rate_bit_s for _, _, rate_bit_s in fabric.graph.edges(name, data="rate_bit_s"))
    is_switch = fabric.graph.nodes[name]["kind"] == SWITCH
    return float(rate) * (SWITCH_LOAD if is_switch else 1.0)


def _units(fabric: Fabric, loads: Mapping[str, float], most: float) -> list[tuple[str, ...]]:
    """Return the units that are placed as one: a switch with its hosts.

    If that is too much for any server, the switch and its hosts are units of their own.
    """
    units: list[tuple[str, ...]] = []
    for switch in fabric.switches:
        hosts = tuple(name for name in fabric.graph.adj[switch] if name in fabric.hosts)
        together = (switch, *hosts)
        if sum(loads[name] for name in together) <= most * (1 + TOLERANCE):
            units.append(together)
        else:
            units += [(name,) for name in together]
    return units


class _Search:
    """Search for a placement: greedy first, then moves and swaps of units as long as they reduce the cost."""

    def __init__(
        self,
        fabric: Fabric,
        loads: Mapping[str, float],
        units: Sequence[tuple[str, ...]],
        shares: Mapping[str, float],
    ) -> None:
        import networkx as nx  # takes long, and only runs over several servers need it

        self._shares = shares
        self._units = sorted(units, key=lambda unit: -sum(loads[name] for name in unit))
        self._loads = [sum(loads[name] for name in unit) for unit in self._units]
        unit_of = {name: number for number, unit in enumerate(self._units) for name in unit}
        self._graph = nx.Graph()
        self._graph.add_nodes_from(range(len(self._units)))
        for one, other, rate_bit_s in fabric.graph.edges(data="rate_bit_s"):
            first, second = unit_of[one], unit_of[other]
            if first != second:
                before = self._graph.get_edge_data(first, second, {"rate_bit_s": 0.0})["rate_bit_s"]
                self._graph.add_edge(first, second, rate_bit_s=before + rate_bit_s)

    def best(self) -> dict[str, str]:
        """Return the server of each host and switch."""
        self._where = self._greedy()
        self._carried = dict.fromkeys(self._shares, 0.0)
        for server, load in zip(self._where, self._loads, strict=True):
            self._carried[server] += load
        for _ in range(_ROUNDS):
            improved = sum(self._improve(number) for number in range(len(self._units)))
            if not improved:
                break
        return {name: self._where[number] for number, unit in enumerate(self._units) for name in unit}

    def _greedy(self) -> list[str]:
        """Place the heaviest units first.

        Each goes where most of its links lead, of the servers that have room; otherwise to the one with most
        room.
        """
        left = dict(self._shares)
        where: list[str] = []
        for number, load in enumerate(self._loads):
            near = dict.fromkeys(left, 0.0)
            for other, edge in self._graph.adj[number].items():
                if other < number:
                    near[where[other]] += edge["rate_bit_s"]
            fitting = [name for name in left if left[name] >= load * (1 - TOLERANCE)]
            chosen = max(fitting, key=lambda name: (near[name], left[name])) if fitting else None
            server = chosen if chosen is not None and near[chosen] else max(left, key=left.__getitem__)
            left[server] -= load
            where.append(server)
        return where

    def _improve(self, number: int) -> bool:
        """Move a unit to another server, or swap it with one there, if that costs less; returns whether it
        did.
        """
        before = self._cost(number)
        home = self._where[number]
        for server in self._shares:
            if server == home:
                continue
            self._move(number, server)
            if self._cost(number) < before:
                return True
            self._move(number, home)
        if len(self._units) > MOST_SWAPPED:
            return False
        for other in range(number):
            theirs = self._where[other]
            if theirs == home:
                continue
            both = self._cost(number, other)
            self._move(number, theirs)
            self._move(other, home)
            if self._cost(number, other) < both:
                return True
            self._move(number, home)
            self._move(other, theirs)
        return False

    def _move(self, number: int, server: str) -> None:
        self._carried[self._where[number]] -= self._loads[number]
        self._carried[server] += self._loads[number]
        self._where[number] = server

    def _cost(self, *moved: int) -> tuple[float, float]:
        """Return the cost: the fullest server's load over its share, then the rate that crosses at these
        units.

        A fullest server within the tolerance costs nothing. Rates are in thousands of bit/s, so that rounding
        is no gain.
        """
        fullest = max(self._carried[server] / share for server, share in self._shares.items())
        crossing = sum(
            edge["rate_bit_s"]
            for number in moved
            for other, edge in self._graph.adj[number].items()
            if self._where[number] != self._where[other]
        )
        return round(max(fullest, 1 + TOLERANCE), 6), round(crossing / 1000)
