import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.policies import Found, Hits, HomeLoad, Lost, Miss, Pin, Unpin, make_policy
from controller.policies.eventlog import EventLogError, decision_line, read_events, to_line
from controller.policies.events import Event
from workload.generate import generate
from workload.keys import KeySpace

keys = st.binary(min_size=16, max_size=16) | st.integers(0, 2**40)
times_s = st.floats(0, 1e6)
small = st.integers(0, 1000)
logged = st.one_of(
    st.builds(Miss, keys, times_s, small, small, st.none() | keys, small, small, times_s, small, small),
    st.builds(HomeLoad, small, times_s, times_s),
    st.builds(Hits, keys, times_s, small),
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
        '{"event": "Hits", "key": 1}',
        '{"event": "Hits", "key": 1, "now_s": 0, "more": 1}',
    ],
)
def test_bad_lines_are_named(line: str) -> None:
    with pytest.raises(EventLogError, match=r"^log:2: not an event"):
        list(read_events(['{"event": "Lost", "key": 1, "now_s": 0}', line], "log"))


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
            decisions += [decision_line(decision) for decision in policy.handle(event)]
    again = make_policy("reuse", 40)
    repeated = [decision_line(d) for event in read_events(log) for d in again.handle(event)]
    assert repeated == decisions
    assert len(decisions) > 100
