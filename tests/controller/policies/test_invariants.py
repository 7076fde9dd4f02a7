"""The rules of all policies, under any sequence of events."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.policies import (
    OWN_POLICIES,
    POLICY_NAMES,
    Admit,
    Demoted,
    Evict,
    Found,
    Hits,
    HomeLoad,
    Lost,
    Miss,
    Pin,
    Unpin,
    make_policy,
)
from controller.policies.base import Policy
from controller.policies.events import Decision, Event, Key
from controller.policies.reuse import reuse
from tests.controller.policies.checked import Checked, InvariantError
from tests.slow import rest_slow
from workload.generate import generate

CAPACITY = 20
keys = st.integers(0, 45)


def chain_of(key: int) -> dict[str, object]:
    """Keys form chains of five."""
    return {"depth": key % 5, "chain_blocks": 5, "parent": key - 1 if key % 5 else None}


misses = st.builds(
    lambda key, times, home: Miss(key, 0.0, times=times, home=home, **chain_of(key)),  # type: ignore[arg-type]
    keys,
    st.integers(1, 300),
    st.integers(0, 2),
)
events = st.one_of(
    misses,
    misses,
    misses,
    st.builds(Hits, keys, st.just(0.0), st.integers(1, 500)),
    st.builds(HomeLoad, st.integers(0, 2), st.just(0.0), st.floats(0, 10), st.floats(0, 1e308)),
    st.builds(Lost, keys, st.just(0.0)),
    # Its length is left out here: `builds` of the class would make one up, longer than a pool, too.
    st.builds(lambda key: Found(key, 0.0), keys),
    st.builds(Pin, keys, st.just(0.0)),
    st.builds(Unpin, keys, st.just(0.0)),
    st.builds(Demoted, keys, st.just(0.0)),
)


@given(st.lists(events, max_size=120))
def test_any_events(happened: list[Event]) -> None:
    """All policies are given the same events: to make these up takes the time."""
    for name in POLICY_NAMES:
        checked = Checked(make_policy(name, CAPACITY))
        for number, event in enumerate(happened):
            if isinstance(event, Pin) and len(checked.policy.pinned) >= CAPACITY - 1:
                continue
            checked.handle(event._replace(now_s=float(number)))
        checked.check_all()


sized = st.one_of(
    st.builds(lambda miss, fragments: miss._replace(fragments=fragments), misses, st.integers(1, 40)),
    st.builds(lambda key, fragments: Found(key, 0.0, fragments), keys, st.integers(1, 40)),
)


@example([Found(0, 0.0, fragments=0), Hits(0, 0.0)])
@example([Found(0, 0.0, fragments=-1), Hits(0, 0.0)])
@example([Miss(0, 0.0, fragments=-1), Hits(0, 0.0)])
@example([Found(2, 0.0, 11), Found(0, 0.0, 40), Miss(2, 0.0, 2, 5, 1, fragments=10)])
@given(st.lists(st.one_of(sized, sized, sized, events), max_size=120))
def test_any_events_with_blocks_of_any_size(happened: list[Event]) -> None:
    for name in POLICY_NAMES:
        checked = Checked(make_policy(name, CAPACITY, capacity_slots=60))
        for number, event in enumerate(happened):
            if isinstance(event, Pin) and len(checked.policy.pinned) >= 1:
                continue
            checked.handle(event._replace(now_s=float(number)))
            assert checked.policy.capacity.held_blocks == len(checked)
        checked.check_all()


@pytest.mark.parametrize("name", OWN_POLICIES)
@pytest.mark.parametrize("pure", [False, True])
def test_numbers_that_cannot_be_are_refused_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, pure: bool
) -> None:
    """By both cores alike."""
    if pure:
        monkeypatch.setattr(reuse, "compiled", lambda: None)
    checked = Checked(make_policy(name, CAPACITY, capacity_slots=60))
    for key in range(40):
        checked.handle(Miss(key, 0.0))
    held = set(checked.policy)
    for times in (0, -5, 2**31, 2**40, 2**70):
        for event in (Miss(100, 1.0, times=times), Hits(next(iter(held)), 1.0, times)):
            with pytest.raises(ValueError, match=f"asked for {times} times"):
                checked.policy.handle(event)
    for fragments in (2**31, 2**40, 2**70):
        for said in (Miss(100, 1.0, fragments=fragments), Found(100, 1.0, fragments)):
            with pytest.raises(ValueError, match=f"have {fragments} fragments"):
                checked.policy.handle(said)
    checked.check_all()
    for _ in range(3):
        checked.handle(Miss(100, 1.0, times=2**31 - 1) if 100 not in checked else Hits(100, 1.0, 2**31 - 1))
    checked.handle(Miss(101, 1.0, fragments=2**31 - 1))
    checked.check_all()


@pytest.mark.parametrize("name", OWN_POLICIES)
def test_a_pool_holds_more_of_what_is_smaller(name: str) -> None:
    for fragments, most in ((4, 30), (2, 60)):
        checked = Checked(make_policy(name, 100, capacity_slots=120))
        for key in range(200):
            checked.handle(Miss(key, 0.0, fragments=fragments))
        assert most - 1 <= len(checked) <= most


@pytest.mark.parametrize("name", OWN_POLICIES)
def test_blocks_of_one_size_are_decided_as_if_only_their_number_counted(name: str) -> None:
    """Slots for just so many blocks decide nothing of their own."""
    decisions = []
    for slots, fragments in ((None, 1), (60 * 8, 8)):
        policy = make_policy(name, 60, capacity_slots=slots)
        said: list[Decision] = []
        for request in generate("agents", 1, 150).requests:
            chain = request.blocks
            for depth, block in enumerate(chain):
                parent = chain[depth - 1] if depth else None
                asked = Miss(block, request.arrival_s, depth, len(chain), parent, fragments=fragments)
                said += policy.handle(Hits(block, request.arrival_s) if block in policy else asked)
        decisions.append(said)
    assert decisions[0] == decisions[1]


def play(policy: Checked, shape: str, requests: int) -> list[Decision]:
    decisions: list[Decision] = []
    for request in generate(shape, 1, requests).requests:
        chain = request.blocks
        for depth, block in enumerate(chain):
            parent = chain[depth - 1] if depth else None
            asked = Miss(block, request.arrival_s, depth, len(chain), parent)
            event = Hits(block, request.arrival_s) if block in policy else asked
            decisions += policy.handle(event)
    policy.check_all()
    return decisions


@pytest.mark.parametrize("name", rest_slow(OWN_POLICIES, POLICY_NAMES))
def test_a_trace_gives_the_same_decisions_twice(name: str) -> None:
    first, second = (play(Checked(make_policy(name, 60, seed=3)), "agents", 150) for _ in range(2))
    assert first == second
    assert any(isinstance(decision, Evict) for decision in first)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_all_pinned_means_nothing_is_evicted(name: str) -> None:
    checked = Checked(make_policy(name, CAPACITY))
    for key in range(CAPACITY):
        checked.handle(Miss(key, 0.0))
    held = set(checked)
    for pinned in held:
        checked.handle(Pin(pinned, 0.0))
    for key in range(100, 140):
        checked.handle(Miss(key, 1.0))
    assert set(checked) >= held
    for pinned in held:
        checked.handle(Unpin(pinned, 2.0))
    for key in range(200, 400):
        checked.handle(Miss(key, 3.0))
        checked.handle(Miss(key, 3.0) if key not in checked else Hits(key, 3.0))
    assert len(checked) <= CAPACITY


class Careless(Policy):
    """Answers what it was told to."""

    name = "careless"

    def __init__(self, *answers: list[Decision]) -> None:
        super().__init__(1)
        self.answers = list(answers)
        self.keys: set[Key] = set()

    def __contains__(self, key: object) -> bool:
        return key in self.keys

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.keys)

    def miss(self, event: Miss) -> list[Decision]:
        self.keys.add(event.key)
        return self.answers.pop(0)

    def hits(self, event: Hits) -> None: ...

    def lost(self, event: Lost) -> None: ...

    def found(self, event: Found) -> list[Decision]:
        return []


def test_the_checker_finds_what_is_wrong() -> None:
    wrong: list[tuple[list[list[Decision]], str]] = [
        ([[Admit(0)], [Admit(1)]], "admits before it evicts"),
        ([[Evict(0)]], "which it does not hold"),
        ([[]], "lost count"),
        ([[Admit(0)], [Evict(0), Admit(0), Admit(0)]], "twice"),
    ]
    for answers, complaint in wrong:
        checked = Checked(Careless(*answers))
        for key in range(len(answers) - 1):
            checked.handle(Miss(key, 0.0))
        with pytest.raises(InvariantError, match=complaint):
            checked.handle(Miss(len(answers), 0.0))
    pinned = Checked(Careless([Admit(0)], [Evict(0), Admit(1)]))
    pinned.handle(Miss(0, 0.0))
    pinned.handle(Pin(0, 0.0))
    with pytest.raises(InvariantError, match="pinned"):
        pinned.handle(Miss(1, 0.0))
