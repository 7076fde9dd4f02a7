import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.policies import Found, Hits, HomeLoad, Lost, Miss, Pin, Unpin, make_policy
from controller.policies.eventlog import EventLogError, Head, read_events, read_head, to_line
from controller.policies.events import Event
from workload.generate import generate
from workload.keys import KeySpace

keys = st.binary(min_size=16, max_size=16) | st.integers(0, 2**40)
times_s = st.floats(0, 1e6)
small = st.integers(0, 1000)
some = st.integers(1, 1000)
logged = st.one_of(
    st.builds(Miss, keys, times_s, small, small, st.none() | keys, some, small, times_s, small, small),
    st.builds(HomeLoad, small, times_s, times_s, st.floats(0, 1e308)),
    st.builds(Hits, keys, times_s, some),
    st.builds(Found, keys, times_s, small),
    *(st.builds(kind, keys, times_s) for kind in (Lost, Pin, Unpin)),
)


@given(st.lists(logged))
def test_events_read_back(events: list[Event]) -> None:
    assert list(read_events(to_line(event) for event in events)) == events


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"event": "Boom"}',
        '{"event": "Hits", "key": 1.5, "now_s": 0}',
        '{"event": "Hits", "key": 1, "now_s": "x"}',
        '{"event": "Hits", "key": "zz", "now_s": 0}',
        '{"event": "Hits", "key": 1, "now_s": 0, "times": -1}',
        '{"event": "Hits", "key": 1, "now_s": 0, "times": 0}',
        '{"event": "Hits", "key": 1, "now_s": 0, "times": 2147483648}',
        '{"event": "Miss", "key": 1, "now_s": 0, "times": 0}',
        '{"event": "Miss", "key": 1, "now_s": 0, "recompute_s": NaN}',
        '{"event": "HomeLoad", "home": 1, "now_s": 0, "wait_s": Infinity}',
        '{"event": "HomeLoad", "home": 1, "now_s": 0, "wait_s": 1e999}',
        '{"event": "Hits", "key": 1}',
        '{"event": "Hits", "key": 1, "now_s": 0, "more": 1}',
    ],
)
def test_bad_lines_are_named(line: str) -> None:
    with pytest.raises(EventLogError, match=r"^log:2: not an event"):
        list(read_events(['{"event": "Lost", "key": 1, "now_s": 0}', line], "log"))


HEAD = Head("reuse", 24, 96, 2e11, "llama3-70b", "a100", 512, 0.5)


def test_the_first_line_says_what_the_pool_was() -> None:
    log = [HEAD.to_line(), to_line(Lost(1, 0.0))]
    assert read_head(log) == HEAD
    assert list(read_events(log)) == [Lost(1, 0.0)]
    assert read_head(log[1:]) is None
    assert read_head([]) is None
    with pytest.raises(EventLogError, match=r"^log:2: not an event"):
        list(read_events(log[1:] + log[:1], "log"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity_blocks": 0},
        {"capacity_slots": 1.5},
        {"capacity_blocks": None},
        {"link_bit_s": float("nan")},
        {"policy": 1},
        {"more": 1},
    ],
)
def test_a_first_line_that_cannot_be_is_named(wrong: dict[str, Any]) -> None:
    line = json.dumps({"pool": asdict(HEAD) | wrong})
    with pytest.raises(EventLogError, match=r"^log:1: "):
        read_head([line], "log")


@pytest.mark.parametrize(
    "line",
    ['{"pool": 1}', '{"pool": {}}', '{"pool":', '{"pool":' + "[" * 100_000, '{"pool":' + '{"a":' * 100_000],
)
def test_a_first_line_that_says_nothing_of_a_pool_is_named(line: str) -> None:
    with pytest.raises(EventLogError, match=r"^log:1: says nothing"):
        read_head([line], "log")


def test_a_logged_run_replays_to_the_same_decisions() -> None:
    space, policy = KeySpace(), make_policy("reuse", 40)
    log, decisions = [], []
    for request in generate("agents", 1, 120).requests:
        chain = list(space.chain(request.blocks))
        for depth, key in enumerate(chain):
            parent = chain[depth - 1] if depth else None
            event: Event = Miss(key, request.arrival_s, depth, len(chain), parent, 1, depth % 3)
            if key in policy:
                event = Hits(key, request.arrival_s)
            log.append(to_line(event))
            decisions += [repr(decision) for decision in policy.handle(event)]
    again = make_policy("reuse", 40)
    repeated = [repr(d) for event in read_events(log) for d in again.handle(event)]
    assert repeated == decisions
    assert len(decisions) > 100
