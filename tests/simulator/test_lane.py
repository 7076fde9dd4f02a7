"""Windows over parts of blocks, as hostlib.native.lane has them over fragments."""

from hypothesis import given
from hypothesis import strategies as st

from hostlib.native.lane import Lane as HostLane
from hostlib.native.lane import Request
from hostlib.native.lane_options import LaneOptions
from simulator.lane import Item, Lane


class Part(Item):
    def __init__(self, fragments: int) -> None:
        self.fragments = fragments


def test_a_window_bounds_what_is_in_flight() -> None:
    lane = Lane[Part](LaneOptions(initial_window=32))
    lane.waiting.extend(Part(8) for _ in range(6))
    assert len(list(lane.take(0.0))) == 4
    assert list(lane.take(0.0)) == []
    lane.settle(8, 0.0, None)
    assert len(list(lane.take(0.0))) == 1


def test_a_part_larger_than_the_window_goes_alone() -> None:
    lane = Lane[Part](LaneOptions(initial_window=16))
    lane.waiting.extend([Part(31), Part(31)])
    assert len(list(lane.take(0.0))) == 1
    assert list(lane.take(0.0)) == []
    lane.settle(31, 0.0, None)
    lane.settle(1, 0.0, None)  # the answer to what still waits
    assert len(list(lane.take(0.0))) == 1


def test_the_window_follows_the_backlog() -> None:
    lane = Lane[Part](LaneOptions(initial_window=32, max_window=40, min_window=4))
    lane.settle(32, 0.0, 5.0)
    assert lane.window == 33
    for _ in range(40):
        lane.settle(32, 0.0, 5.0)
    assert lane.window == 40
    for _ in range(40):
        lane.settle(8, 0.0, 100.0)
    assert lane.window == 4


def test_after_a_pause_the_window_is_at_its_start_again() -> None:
    lane = Lane[Part](LaneOptions(initial_window=32, min_window=4, min_timeout_s=0.2))
    for _ in range(40):
        lane.settle(8, 1.0, 100.0)
    lane.in_flight = 0
    lane.waiting.append(Part(1))
    assert len(list(lane.take(1.1))) == 1
    assert lane.window == 4
    lane.settle(1, 1.1, None)
    lane.waiting.append(Part(1))
    assert len(list(lane.take(1.4))) == 1
    assert lane.window == 32


ANSWERS = st.tuples(st.floats(0.0, 0.3), st.none() | st.integers(0, 200), st.booleans())
"""How much later, the home's backlog (None: from a pool), and whether the reply was shared."""


@given(st.lists(ANSWERS, max_size=300))
def test_as_many_fragments_may_be_in_flight_as_at_a_host(
    answers: list[tuple[float, int | None, bool]],
) -> None:
    host, lane, now_s = HostLane[str]("home", LaneOptions()), Lane[Part](LaneOptions()), 1.0
    waiting = [Request("owner", number) for number in range(len(answers) + LaneOptions().max_window)]
    host.add(waiting)
    lane.waiting.extend(Part(1) for _ in waiting)
    flying = host.take(now_s)
    assert len(list(lane.take(now_s))) == len(flying)
    for later_s, backlog_ms, merged in answers:
        if not flying:
            break
        now_s += later_s
        host.settle(flying.pop(0), now_s, backlog_ms, merged)
        lane.settle(1, now_s, backlog_ms, merged)
        taken = host.take(now_s)
        assert len(list(lane.take(now_s))) == len(taken)
        flying += taken
        assert lane.allowed == host.allowed
