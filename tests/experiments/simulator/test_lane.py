"""Windows over parts of blocks, as hostlib.lane has them over fragments."""

from dataclasses import dataclass

from experiments.simulator.lane import Lane
from hostlib.lane import LaneOptions


@dataclass
class Part:
    fragments: int


def test_a_window_bounds_what_is_in_flight() -> None:
    lane = Lane[Part](LaneOptions(initial_window=32))
    lane.waiting.extend(Part(8) for _ in range(6))
    assert len(list(lane.take())) == 4
    assert list(lane.take()) == []
    lane.settle(8, None)
    assert len(list(lane.take())) == 1


def test_a_part_larger_than_the_window_goes_alone() -> None:
    lane = Lane[Part](LaneOptions(initial_window=16))
    lane.waiting.extend([Part(31), Part(31)])
    assert len(list(lane.take())) == 1
    assert list(lane.take()) == []
    lane.settle(31, None)
    lane.settle(1, None)  # the answer to what still waits
    assert len(list(lane.take())) == 1


def test_the_window_follows_the_backlog() -> None:
    lane = Lane[Part](LaneOptions(initial_window=32, max_window=40, min_window=4))
    lane.settle(32, 5.0)
    assert lane.window == 33
    for _ in range(40):
        lane.settle(32, 5.0)
    assert lane.window == 40
    for _ in range(40):
        lane.settle(8, 100.0)
    assert lane.window == 4
