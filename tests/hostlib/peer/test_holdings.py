"""Who holds what among nodes that lend, and how long what they have promised takes."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from hostlib.peer import holdings
from hostlib.peer.holdings import Holdings
from hostlib.protocol.errors import LineError
from tests.hostlib.world import key

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
NODES = [A, B, C]
BLOCK_S = 0.25


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def keys(*numbers: int) -> list[bytes]:
    return [key(number) for number in numbers]


def some() -> tuple[Holdings, Clock]:
    clock = Clock()
    return Holdings(NODES, BLOCK_S, clock), clock


def test_a_prefix_ends_at_the_first_block_that_nobody_else_holds() -> None:
    known, _ = some()
    known.held(B, keys(0, 1, 3))
    known.held(A, keys(2))
    assert known.locate(A, keys(0, 1, 2, 3)).nodes == [B, B]
    assert known.locate(C, keys(0, 1, 2, 3)).nodes == [B, B, A, B]
    assert known.locate(C, keys(7, 0)) == ([], {})


def test_of_several_holders_that_is_asked_which_waits_least_and_a_chain_is_spread_over_them() -> None:
    known, _ = some()
    for node in (A, B):
        known.held(node, keys(0, 1, 2, 3))
    assert known.locate(C, keys(0, 1, 2, 3)).nodes == [A, B, A, B]
    known.promise({A: 2})
    located = known.locate(C, keys(0, 1, 2, 3))
    assert located.nodes == [B, B, A, B]
    assert located.waits_s == {B: 0.0, A: 2 * BLOCK_S}


def test_a_promise_takes_its_time_and_is_over_then() -> None:
    known, clock = some()
    known.held(B, keys(0))
    known.promise({B: 4})
    clock.now_s += BLOCK_S
    known.promise({B: 1})
    assert known.locate(A, keys(0)).waits_s == {B: 4 * BLOCK_S}
    clock.now_s += 100
    assert known.locate(A, keys(0)).waits_s == {B: 0.0}


def test_who_goes_away_takes_along_what_it_held() -> None:
    known, _ = some()
    known.held(B, keys(0, 1))
    known.held(C, keys(1))
    known.forget(B)
    assert known.locate(A, keys(0, 1)).nodes == []
    assert known.locate(A, keys(1)).nodes == [C]
    assert known.blocks() == 1


@pytest.mark.parametrize("blocks", [{"10.0.0.9": 1}, {A: -1}, {A: 1.5}, {A: "2"}, {A: True}, {A: 10**400}])
def test_a_promise_that_cannot_be_is_refused(blocks: dict[str, int]) -> None:
    known, _ = some()
    with pytest.raises(LineError, match="promised"):
        known.promise(blocks)


def test_what_one_node_is_known_to_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "MAX_HELD_BLOCKS", 3)
    known, _ = some()
    known.held(B, keys(*range(10)))
    assert known.blocks() == 3
    known.gone(B, keys(*range(10)))
    known.held(B, keys(9))
    assert known.locate(A, keys(9)).nodes == [B]


class HoldingsMachine(RuleBasedStateMachine):
    """Whatever is said: a prefix is as long as it is in a plain set for each node."""

    def __init__(self) -> None:
        super().__init__()
        self.known, _ = some()
        self.plain: dict[str, set[int]] = {node: set() for node in NODES}

    @rule(node=st.sampled_from(NODES), numbers=st.lists(st.integers(0, 6), max_size=5))
    def held(self, node: str, numbers: list[int]) -> None:
        self.known.held(node, keys(*numbers))
        self.plain[node].update(numbers)

    @rule(node=st.sampled_from(NODES), numbers=st.lists(st.integers(0, 6), max_size=5))
    def gone(self, node: str, numbers: list[int]) -> None:
        self.known.gone(node, keys(*numbers))
        self.plain[node].difference_update(numbers)

    @rule(node=st.sampled_from(NODES))
    def leaves(self, node: str) -> None:
        self.known.forget(node)
        self.plain[node].clear()

    @rule(asker=st.sampled_from(NODES), numbers=st.lists(st.integers(0, 6), max_size=6))
    def asks(self, asker: str, numbers: list[int]) -> None:
        located = self.known.locate(asker, keys(*numbers))
        others = [held for node, held in self.plain.items() if node != asker]
        there = [any(number in held for held in others) for number in numbers]
        assert len(located.nodes) == (there.index(False) if False in there else len(there))
        for number, node in zip(numbers, located.nodes, strict=False):
            assert node != asker
            assert number in self.plain[node]
        assert set(located.waits_s) == set(located.nodes)


TestHoldings = HoldingsMachine.TestCase
