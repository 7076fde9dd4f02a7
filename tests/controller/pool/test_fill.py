"""Fills: paced, in order, bounded, one packet a block."""

from __future__ import annotations

from ipaddress import IPv4Address

from controller.pool.fill import Fills
from tests.controller.pool_world import key

STORE = IPv4Address("10.0.0.9")


def sent(fills: Fills, now_s: float) -> list[tuple[bytes, int]]:
    return [(request.key, request.fragment) for request in fills.poll(now_s)]


def test_no_block_is_asked_for_while_the_window_is_full() -> None:
    fills = Fills(3, 1.0, 10)
    for number in (1, 2, 3):
        fills.start(key(number), 2, STORE)
    assert fills.due_s <= 0.0
    assert sent(fills, 0.0) == [(key(1), 0), (key(2), 0)]
    assert fills.due_s == 1.0
    assert sent(fills, 0.9) == []
    assert sent(fills, 1.0) == [(key(3), 0)]
    assert len(fills) == 0
    assert fills.due_s == float("inf")


def test_a_block_of_more_fragments_than_the_window_waits_for_those_before_it_alone() -> None:
    fills = Fills(3, 1.0, 10)
    fills.start(key(1), 7, STORE)
    assert sent(fills, 0.0) == [(key(1), 0)]
    fills.start(key(2), 1, STORE)
    assert fills.due_s == 1.0
    assert sent(fills, 1.0) == [(key(2), 0)]


def test_there_is_room_when_as_much_as_is_too_much_was_sent_long_ago() -> None:
    fills = Fills(4, 1.0, 10)
    for number, fragments in enumerate((1, 2, 3)):
        fills.start(key(number), fragments, STORE)
        sent(fills, number / 10)
    fills.start(key(3), 1, STORE)
    assert fills.due_s == 1.1
    assert sent(fills, 1.05) == []
    assert sent(fills, 1.1) == [(key(3), 0)]


def test_a_block_that_left_the_pool_is_not_asked_for_any_more() -> None:
    fills = Fills(1, 1.0, 10)
    for number in (1, 2, 3):
        fills.start(key(number), 3, STORE)
    assert sent(fills, 0.0) == [(key(1), 0)]
    fills.cancel(key(2))
    assert sent(fills, 1.0) == [(key(3), 0)]
    fills.start(key(4), 3, STORE)
    fills.clear()
    assert sent(fills, 2.0) == []


def test_those_that_wait_are_bounded() -> None:
    fills = Fills(1, 1.0, 2)
    assert [fills.start(key(n), 1, STORE) for n in range(3)] == [True, True, False]
