"""A node's GETs in lanes, as hosts have them: one lane holds up no other, up to a common bound."""

import pytest

from hostlib.client.client_options import ClientOptions
from hostlib.native.lane_options import LaneOptions
from simulator.lane import Lane
from simulator.lanes import Lanes
from simulator.messages import Ask, Block

BOUND = ClientOptions().node.initial


def asks(count: int, fragments: int = 1) -> list[Ask]:
    block = Block(b"key", 0, b"", "store1", (1, fragments))
    return [Ask(block, 1, fragments, "node1", 1) for _ in range(count)]


def sent(lanes: Lanes, lane: Lane[Ask], now_s: float = 0.0) -> int:
    before = lane.in_flight
    lanes.take(now_s)
    return lane.in_flight - before


def test_probes_and_what_the_pool_answers_wait_behind_nothing_that_a_home_is_asked_for() -> None:
    lanes = Lanes(LaneOptions())
    lanes.bodies("store1").waiting.extend(asks(100))
    first = LaneOptions().initial_window
    assert sent(lanes, lanes.bodies("store1")) == first
    lanes.probes("store1").waiting.extend(asks(100))
    lanes.pool.waiting.extend(asks(100))
    assert len(lanes.take(0.0)) == 2 * first
    assert (lanes.probes("store1").in_flight, lanes.pool.in_flight) == (first, first)


def test_a_home_is_one_lane_and_probes_open_to_their_own_window() -> None:
    lanes = Lanes(LaneOptions())
    probes = lanes.probes("store1")
    assert lanes.probes("store1") is probes is not lanes.bodies("store1")
    assert lanes.probes("store2") is not probes
    probes.waiting.extend(asks(200))
    for _ in range(50):
        lanes.take(0.0)
        probes.settle(probes.in_flight, 0.0, None)
    assert probes.window == ClientOptions().probe_window < LaneOptions().opened_window


def test_all_lanes_together_have_a_bound_and_take_turns_at_it() -> None:
    lanes = Lanes(LaneOptions(initial_window=48))
    homes = [lanes.bodies(name) for name in ("store1", "store2", "store3")]
    for lane in homes:
        lane.waiting.extend(asks(1000))
    assert len(lanes.take(0.0)) == BOUND
    firsts = set()
    for _ in range(20):
        for lane in homes:
            lane.in_flight -= min(lane.in_flight, 7)
        before = [lane.in_flight for lane in homes]
        lanes.take(0.0)
        assert sum(lane.in_flight for lane in homes) == BOUND
        gained = [lane.in_flight - count for lane, count in zip(homes, before, strict=True)]
        firsts.add(gained.index(max(gained)))
    assert len(firsts) > 1


@pytest.mark.parametrize("others", [0, 3])
def test_of_two_that_wait_that_one_sends_which_sent_longest_ago(others: int) -> None:
    """However many more there are, and however much leaves at once."""
    lanes = Lanes(LaneOptions(initial_window=BOUND))
    for number in range(others):
        lanes.probes(f"store{number}")
    first, second = _two_at_the_bound(lanes)
    assert [_turn(lanes, first, second) for _ in range(6)] == [second, first] * 3


def _two_at_the_bound(lanes: Lanes) -> tuple[Lane[Ask], Lane[Ask]]:
    """Lanes in which more waits than the bound lets out."""
    first, second = lanes.bodies("store1"), lanes.bodies("store2")
    for lane in (first, second):
        lane.waiting.extend(asks(200))
    lanes.take(0.0)
    return first, second


def _turn(lanes: Lanes, first: Lane[Ask], second: Lane[Ask]) -> Lane[Ask]:
    """Whose request leaves when there is room for one."""
    first.in_flight, second.in_flight = BOUND // 2, BOUND // 2 - 1
    lanes.take(0.0)
    return first if first.in_flight > BOUND // 2 else second


def test_a_part_larger_than_the_bound_goes_alone() -> None:
    lanes = Lanes(LaneOptions())
    lane = lanes.bodies("store1")
    lane.waiting.extend(asks(2, 10 * BOUND))
    assert len(lanes.take(0.0)) == 1
    lanes.pool.waiting.extend(asks(1))
    assert lanes.take(0.0) == []
    lane.settle(10 * BOUND, 0.0, 0.0)
    assert len(lanes.take(0.0)) >= 1
