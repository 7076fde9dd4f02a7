"""Fragments' journeys are found in what passed the switches, merged answers included."""

from __future__ import annotations

from typing import TypedDict, Unpack

from emulator.traces.journeys import Journey, find_journeys
from emulator.traces.sightings import Sighting
from hostlib.protocol import wire

A, B, HOME = b"\x0a\0\0\x01", b"\x0a\0\0\x02", b"\x0a\0\0\x09"
NODES = {A: "a", B: "b"}
KEY, OTHER = bytes(16), bytes(15) + b"\1"


class More(TypedDict, total=False):
    """What sightings seldom differ in."""

    flags: int
    fragment: int
    key: bytes


class Way:
    """Sightings one microsecond after the other, at the one switch of a star unless another is named."""

    def __init__(self) -> None:
        self.seen: list[Sighting] = []

    def get(
        self, node: bytes, sequence: int, peer: str, leaving: bool, switch: str = "s1", **more: Unpack[More]
    ) -> Way:
        return self.add(wire.OP_GET, node, HOME, sequence, peer, leaving, switch, **more)

    def answer(
        self, node: bytes, sequence: int, peer: str, leaving: bool, switch: str = "s1",
        op: int = wire.OP_VALUE, **more: Unpack[More],
    ) -> Way:  # fmt: skip
        return self.add(op, HOME, node, sequence, peer, leaving, switch, **more)

    def add(
        self, op: int, source: bytes, destination: bytes, sequence: int, peer: str, leaving: bool,
        switch: str, flags: int = 0, fragment: int = 3, key: bytes = KEY,
    ) -> Way:  # fmt: skip
        self.seen.append(
            Sighting(
                1000 * len(self.seen), switch, peer, leaving, source, destination, op, flags, sequence,
                fragment, key,
            )
        )  # fmt: skip
        return self

    def journeys(self) -> list[Journey]:
        return find_journeys(self.seen, NODES)


def there_and_back(way: Way, node: bytes, name: str, sequence: int) -> Way:
    way.get(node, sequence, name, False).get(node, sequence, "store", True)
    return way.answer(node, sequence, "store", False).answer(node, sequence, name, True)


def test_a_get_and_its_answer_are_one_journey() -> None:
    (journey,) = there_and_back(Way(), A, "a", 7).journeys()
    assert (journey.node, journey.sequence, journey.fragment) == ("a", 7, 3)
    assert [seen.t_ns for seen in journey.sightings] == [0, 1000, 2000, 3000]
    assert journey.outcome == "served by its home"


def test_a_switch_that_serves_is_told_by_the_answer() -> None:
    way = Way().get(A, 7, "a", False).answer(A, 7, "a", True, flags=wire.FLAG_FROM_POOL)
    assert [journey.outcome for journey in way.journeys()] == ["served by a switch"]


def test_a_merged_answer_has_the_leader_s_sequence_and_belongs_to_who_gets_it() -> None:
    way = Way().get(A, 7, "a", False).get(A, 7, "store", True).get(B, 9, "b", False)
    way.answer(A, 7, "store", False)
    way.answer(A, 7, "a", True, flags=wire.FLAG_MERGED).answer(B, 7, "b", True, flags=wire.FLAG_MERGED)
    leader, follower = way.journeys()
    assert (leader.outcome, leader.shared) == ("served by its home", None)
    assert (follower.sequence, follower.outcome, follower.shared) == (9, "merged", ("a", 7))
    assert [seen.t_ns for seen in follower.sightings] == [2000, 5000]


def test_a_merged_answer_is_not_taken_for_another_request_of_the_same_sequence() -> None:
    way = Way().get(B, 7, "b", False, key=OTHER).get(A, 7, "a", False).get(B, 9, "b", False)
    way.answer(B, 7, "b", True, flags=wire.FLAG_MERGED)
    other, leader, follower = way.journeys()
    assert (other.outcome, leader.outcome, follower.outcome) == ("lost", "lost", "merged")


def test_what_is_never_answered_is_lost_and_its_repetition_is_another_journey() -> None:
    way = Way().get(A, 7, "a", False).get(A, 7, "store", True)
    there_and_back(way, A, "a", 8)
    assert [(one.sequence, one.outcome) for one in way.journeys()] == [
        (7, "lost"),
        (8, "served by its home"),
    ]


def test_a_duplicate_answer_adds_nothing() -> None:
    way = there_and_back(Way(), A, "a", 7).answer(A, 7, "store", False).answer(A, 7, "a", True)
    assert [len(journey.sightings) for journey in way.journeys()] == [4]


def test_not_found_and_refused_end_a_journey() -> None:
    for op, outcome in ((wire.OP_NOT_FOUND, "not found"), (wire.OP_REFUSED, "refused")):
        way = Way().get(A, 7, "a", False).answer(A, 7, "a", True, op=op)
        assert [journey.outcome for journey in way.journeys()] == [outcome]


def test_fills_of_a_pool_are_nobody_s_journey() -> None:
    assert Way().get(b"\x0a\xff\0\1", 0, "store", True).journeys() == []
