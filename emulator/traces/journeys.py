"""Journeys of single fragments: a GET from its node to the host or switch that answered, and the answer.

Node and sequence identify a GET and its answer. A merged reply has another node's sequence: it belongs to its
receiver's GETs of that fragment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from emulator.traces.sightings import Sighting
from hostlib.protocol import wire


@dataclass(slots=True)
class Journey:
    """Journey of one GET of one fragment, with its sightings in order of time."""

    node: str
    sequence: int
    key: bytes
    fragment: int
    flags: int
    """Flags of the GET."""
    sightings: list[Sighting] = field(default_factory=list)
    shared: tuple[str, int] | None = None
    """Node and sequence of the GET whose answer this one got a copy of."""
    ended: bool = False
    """Whether the answer reached the node's cable."""

    @property
    def outcome(self) -> str:
        """Return the outcome in a few words."""
        if not self.ended:
            return "lost"
        answer = self.sightings[-1]
        if answer.op != wire.OP_VALUE:
            return "not found" if answer.op == wire.OP_NOT_FOUND else "refused"
        if self.shared is not None:
            return "merged"
        return "served by a switch" if answer.flags & wire.FLAG_FROM_POOL else "served by its home"


def find_journeys(sightings: Iterable[Sighting], nodes: Mapping[bytes, str]) -> list[Journey]:
    """Return the journeys in the sightings of all switches, which are in order of time.

    `nodes` has names by IPv4 address.
    """
    finder = _Finder(nodes)
    for sighting in sightings:
        if sighting.op == wire.OP_GET:
            finder.get(sighting)
        else:
            finder.answer(sighting)
    return finder.journeys


class _Finder:
    def __init__(self, nodes: Mapping[bytes, str]) -> None:
        self.journeys: list[Journey] = []
        self._nodes = nodes
        self._by_sequence: dict[tuple[str, int], Journey] = {}
        self._open: dict[tuple[str, bytes, int], list[Journey]] = {}
        self._asked: dict[tuple[int, bytes, int], tuple[str, int]] = {}
        """Node and sequence of the first GET with a sequence, key and fragment."""

    def get(self, seen: Sighting) -> None:
        node = self._nodes.get(seen.source)
        if node is None:  # a fill, on behalf of a pool
            return
        journey = self._by_sequence.get((node, seen.sequence))
        if journey is None or (journey.key, journey.fragment) != (seen.key, seen.fragment):
            journey = Journey(node, seen.sequence, seen.key, seen.fragment, seen.flags)
            self.journeys.append(journey)
            self._by_sequence[node, seen.sequence] = journey
            self._open.setdefault((node, seen.key, seen.fragment), []).append(journey)
            self._asked.setdefault((seen.sequence, seen.key, seen.fragment), (node, seen.sequence))
        journey.sightings.append(seen)

    def answer(self, seen: Sighting) -> None:
        node = self._nodes.get(seen.destination)
        if node is None:
            return
        own = self._by_sequence.get((node, seen.sequence))
        if own is not None and (own.key, own.fragment) == (seen.key, seen.fragment):
            self._note(own, seen, None)
            return
        leader = self._asked.get((seen.sequence, seen.key, seen.fragment))
        for journey in tuple(self._open.get((node, seen.key, seen.fragment), ())):
            self._note(journey, seen, leader)

    def _note(self, journey: Journey, seen: Sighting, shared: tuple[str, int] | None) -> None:
        if journey.ended:
            return
        journey.sightings.append(seen)
        if shared is not None:
            journey.shared = shared
        if seen.leaving and seen.peer == journey.node:
            journey.ended = True
            place = journey.node, journey.key, journey.fragment
            still = [one for one in self._open.get(place, ()) if one is not journey]
            if still:
                self._open[place] = still
            else:
                self._open.pop(place, None)
