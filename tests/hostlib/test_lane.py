from __future__ import annotations

import math

import pytest

from hostlib.native.lane import Lane, Request
from hostlib.native.lane_options import LaneOptions

OPTIONS = LaneOptions(initial_window=8, opened_window=8, min_window=2, max_window=10, deadline_s=5)


def full_lane(requests: int) -> tuple[Lane[str], list[Request[str]]]:
    lane: Lane[str] = Lane("home", OPTIONS)
    asked = [Request("owner", index) for index in range(requests)]
    lane.add(asked)
    return lane, asked


def test_the_window_bounds_what_is_in_flight() -> None:
    lane, asked = full_lane(20)
    assert lane.take(0) == asked[:8]
    assert lane.take(0) == []
    lane.settle(asked[0], 0.01, backlog_ms=0)
    assert lane.take(0.01) == asked[8:9]


def test_the_window_grows_by_about_one_a_round_trip_up_to_its_limit() -> None:
    lane, asked = full_lane(200)
    for request in lane.take(0):
        lane.settle(request, 0.01, backlog_ms=0)
    assert 8.8 < lane.window <= 9
    while batch := lane.take(1):
        for request in batch:
            lane.settle(request, 1.01, backlog_ms=0)
    assert lane.window == OPTIONS.max_window
    assert all(request.done for request in asked)
    assert not lane.busy


def test_the_window_shrinks_by_a_fifth_a_round_trip_while_the_home_is_behind() -> None:
    lane, _ = full_lane(20)
    for request in lane.take(0):
        lane.settle(request, 0.01, backlog_ms=OPTIONS.target_backlog_ms + 1)
    assert lane.window == pytest.approx(8 - 8 * 0.2)
    while batch := lane.take(1):
        for request in batch:
            lane.settle(request, 1.01, backlog_ms=1000)
    assert lane.window >= OPTIONS.min_window


def test_an_answer_from_nearer_leaves_the_window_alone() -> None:
    lane, _ = full_lane(8)
    for request in lane.take(0):
        lane.settle(request, 0.01, backlog_ms=None)
    assert lane.window == 8
    assert not lane.busy


@pytest.mark.parametrize("backlog_ms", [0, None])
def test_each_answer_opens_the_window_by_one_until_it_is_open(backlog_ms: int | None) -> None:
    """Answers of the home and of the pool: as many again a round trip, from 4."""
    lane: Lane[str] = Lane("home", LaneOptions())
    lane.add([Request("owner", index) for index in range(200)])
    sizes = []
    for trip in range(5):
        batch = lane.take(trip * 0.01)
        sizes.append(len(batch))
        for request in batch:
            lane.settle(request, trip * 0.01 + 0.01, backlog_ms)
    assert sizes == [4, 8, 16, 32, 32]


@pytest.mark.parametrize("what", ["lost", "backlog"])
def test_a_loss_or_a_long_backlog_ends_the_opening(what: str) -> None:
    lane: Lane[str] = Lane("home", LaneOptions())
    lane.add([Request("owner", index) for index in range(200)])
    first = lane.take(0)
    if what == "lost":
        lane.expire(1.0)
        first = lane.take(1.0)
    else:
        lane.settle(first.pop(), 0.01, LaneOptions().target_backlog_ms + 1)
    before = lane.window
    lane.settle(first[0], 1.01, 0)
    assert before < lane.window < before + 0.5


def test_a_burst_of_losses_halves_the_window_once_a_round_trip_and_not_below_its_limit() -> None:
    lane, _ = full_lane(20)
    lane.take(0)
    retried, dead = lane.expire(1.0)
    assert (len(retried), dead, lane.window) == (8, [], 4)
    now_s = 1.0
    for _ in range(3):
        lane.take(now_s)
        now_s += OPTIONS.max_timeout_s
        lane.expire(now_s)
    assert lane.window == OPTIONS.min_window


def test_retransmissions_come_before_first_transmissions_in_their_order() -> None:
    lane, asked = full_lane(20)
    lane.take(0)
    lane.expire(1.0)
    assert lane.take(1.0) == asked[:4]


def test_the_timeout_follows_the_round_trips_and_backs_off() -> None:
    lane, asked = full_lane(3)
    assert lane.timeout_s == OPTIONS.initial_timeout_s
    lane.take(0)
    lane.settle(asked[0], 0.5, backlog_ms=0)
    assert lane.timeout_s == pytest.approx(0.5 + 4 * 0.25)
    lane.settle(asked[1], 0.001, backlog_ms=None)
    assert lane.timeout_s == pytest.approx(1.5)
    timeouts = []
    now_s = 1.0
    for _ in range(4):
        lane.expire(now_s)
        lane.take(now_s)
        timeouts.append(asked[2].timeout_s)
        now_s += asked[2].timeout_s
    assert timeouts == [2.0] * 4  # doubled, then at its limit


def test_quick_first_answers_say_nothing_of_the_queue_that_all_build() -> None:
    lane, asked = full_lane(2)
    lane.take(0)
    lane.settle(asked[0], 0.002, backlog_ms=0)
    assert lane.timeout_s == OPTIONS.initial_timeout_s
    lane.add([later := Request("owner", 99)])
    lane.take(0.002)
    lane.settle(asked[1], 0.003, backlog_ms=1)
    assert lane.timeout_s == OPTIONS.initial_timeout_s
    lane.settle(later, 0.004, backlog_ms=1)
    assert lane.timeout_s == OPTIONS.min_timeout_s


def test_an_answer_to_a_retransmission_is_no_sample() -> None:
    lane, asked = full_lane(1)
    lane.take(0)
    lane.expire(1.0)
    lane.take(1.0)
    lane.settle(asked[0], 1.001, backlog_ms=0)
    assert lane.timeout_s == OPTIONS.initial_timeout_s


def test_after_the_deadline_a_request_is_dead() -> None:
    lane, asked = full_lane(1)
    now_s = 0.0
    dead: list[Request[str]] = []
    while not dead:
        lane.take(now_s)
        now_s += asked[0].timeout_s
        _, dead = lane.expire(now_s)
    assert dead == asked
    assert OPTIONS.deadline_s <= now_s < OPTIONS.deadline_s + OPTIONS.max_timeout_s
    assert not lane.busy


def test_while_replies_are_shared_more_may_be_in_flight_but_not_without_bound() -> None:
    lane, asked = full_lane(1000)
    window = lane.window
    for _ in range(3 * OPTIONS.max_window):
        lane.take(0)
        lane.settle(asked.pop(0), 0.1, OPTIONS.target_backlog_ms + 1, merged=True)
    assert (lane.window, lane.allowed) == (window, OPTIONS.max_window)


@pytest.mark.parametrize("ends", ["others want no more", "nothing is asked for"])
def test_what_shared_replies_allowed_ends_with_them(ends: str) -> None:
    lane, asked = full_lane(12)
    lane.take(0)
    for request in asked[:2]:
        lane.settle(request, 0.1, OPTIONS.merged_backlog_ms, merged=True)
    assert lane.allowed == int(lane.window) + 2
    lane.settle(asked[2], 0.1, OPTIONS.merged_backlog_ms + 1, merged=True)
    assert lane.allowed == int(lane.window) + 2  # the home's queue is long enough
    if ends == "others want no more":
        lane.settle(asked[3], 0.1, 0)
    else:
        for request in asked:
            lane.drop(request)
        lane.add([Request("owner", 99)])
        lane.take(1)
    assert lane.allowed == int(lane.window)


@pytest.mark.parametrize("idle_s", [0.0, OPTIONS.min_timeout_s])
def test_after_a_pause_the_window_starts_anew(idle_s: float) -> None:
    lane, asked = full_lane(8)
    lane.take(0)
    for request in asked:
        lane.settle(request, 0.1, backlog_ms=1000)
    shrunk = lane.window
    assert shrunk < OPTIONS.initial_window
    lane.add([Request("owner", 99)])
    lane.take(0.1 + idle_s)
    assert lane.window == (OPTIONS.initial_window if idle_s else shrunk)


def test_what_waits_at_the_home_is_not_late() -> None:
    lane, asked = full_lane(2)
    lane.take(0)
    lane.settle(asked[0], 0.01, backlog_ms=500)
    assert lane.expire(OPTIONS.initial_timeout_s + 0.49) == ([], [])
    assert lane.expire(OPTIONS.initial_timeout_s + 0.51) == ([asked[1]], [])


def test_it_knows_since_when_something_has_been_in_flight() -> None:
    lane, asked = full_lane(2)
    assert lane.oldest_s() is None
    lane.take(1.0)
    lane.expire(3.0)
    lane.take(3.0)  # again, which is no first transmission
    assert lane.oldest_s() == 1.0
    for request in asked:
        lane.settle(request, 3.1, backlog_ms=None)
    assert lane.oldest_s() is None


def test_what_another_lanes_packets_carry_counts_as_in_flight() -> None:
    lane, asked = full_lane(1)
    lane.drop(asked[0])
    carried = Request("owner", 5)
    lane.launched([carried], 1.0)
    assert (lane.in_flight, lane.oldest_s()) == (1, 1.0)
    assert lane.expire(1.0 + OPTIONS.initial_timeout_s) == ([carried], [])
    assert lane.take(2.0) == [carried]


def test_no_more_is_taken_than_there_is_room_for() -> None:
    lane, asked = full_lane(20)
    assert lane.take(0, room=3) == asked[:3]


def test_a_dropped_request_is_not_sent() -> None:
    lane, asked = full_lane(2)
    lane.drop(asked[0])
    assert lane.take(0) == asked[1:]
    lane.drop(asked[1])
    assert not lane.busy


def test_what_was_sent_before_anything_was_known_times_out_by_what_is_known_now() -> None:
    lane: Lane[str] = Lane("home", LaneOptions(min_timeout_s=0.2, initial_timeout_s=1.0))
    lost, first, second = (Request("block", fragment) for fragment in range(3))
    lane.add([lost, first])
    lane.take(0.0)
    lane.settle(first, 0.01, 0)
    lane.add([second])
    lane.take(0.02)
    lane.settle(second, 0.03, 0)
    assert lane.expire(0.19) == ([], [])
    assert lane.expire(0.21) == ([lost], [])


def test_what_may_take_longer_than_the_least_timeout_is_not_late_then_whatever_the_clock_says() -> None:
    lane: Lane[str] = Lane("home", LaneOptions(min_timeout_s=0.2, initial_timeout_s=1.0))
    began_s = 5_000.0
    request = Request("block", 0)
    lane.add([request])
    lane.take(began_s)
    assert lane.expire(began_s + 0.9) == ([], [])
    assert lane.expire(began_s + 1.1) == ([request], [])


def test_nothing_times_out_before_the_least_timeout_after_the_first_transmission() -> None:
    lane: Lane[str] = Lane("home", LaneOptions(min_timeout_s=0.2))
    assert lane.earliest_timeout_s() == math.inf
    asked = [Request("block", fragment) for fragment in range(3)]
    for at, request in enumerate(asked):
        lane.add([request])
        lane.take(float(at))
    lane.settle(asked[0], 2.0, 0)
    assert lane.earliest_timeout_s() == 1.2
    assert lane.expire(1.19) == ([], [])
    retried, _ = lane.expire(9.0)
    assert retried == asked[:0:-1]
    lane.take(9.5)
    assert lane.earliest_timeout_s() == 9.7
