"""PUTs fragment by fragment: within the window, and no longer than until the home holds the block."""

from typing import Any

from hostlib.native.lane_options import LaneOptions
from simulator.emulated.live_puts import LivePuts
from simulator.events import Loop
from simulator.messages import Block, Put

FRAGMENTS = 16
OPTIONS = LaneOptions()


class Wire:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Put] = []

    def put(self, source: str, put: Put, tail_s: float = 0.0) -> None:
        self.sent.append(put)


def block(number: int) -> Block:
    return Block(bytes([number]) * 16, 0, b"", "store", (1, FRAGMENTS - 1))


def putting(workers: int = 4) -> tuple[LivePuts, list[Put]]:
    wire: Any = Wire()
    return LivePuts(Loop(), "node", wire, OPTIONS, workers), wire.sent


def acknowledge(puts: LivePuts, put: Put, held: bool = False) -> None:
    put.held = held
    puts.acknowledged(put)


def test_a_window_leaves_at_once_and_then_as_many_as_are_acknowledged_and_more() -> None:
    puts, sent = putting()
    puts.store([block(1)], 100)
    assert [put.fragment for put in sent] == list(range(OPTIONS.initial_window))
    acknowledge(puts, sent[0])
    assert len(sent) == OPTIONS.initial_window + 2  # the window opens by what was acknowledged


def test_a_block_that_is_held_by_now_is_sent_no_further_and_the_next_one_begins() -> None:
    puts, sent = putting(workers=1)
    puts.store([block(1), block(2)], 100)
    first = list(sent)
    acknowledge(puts, first[0], held=True)
    assert puts.done == 1
    behind = sent[len(first) :]
    assert behind
    assert all(put.block.key == block(2).key for put in behind)
    for put in first[1:]:  # late: they count no more
        acknowledge(puts, put, held=True)
    assert puts.done == 1


def test_all_of_a_block_is_sent_once_where_nobody_else_has_it() -> None:
    puts, sent = putting()
    puts.store([block(1)], 100)
    at = 0
    while at < len(sent):
        acknowledge(puts, sent[at], held=at == FRAGMENTS - 1)
        at += 1
    assert [put.fragment for put in sent] == list(range(FRAGMENTS))
    assert puts.done == 1


def test_a_home_that_lost_part_of_a_block_is_sent_all_of_it_again() -> None:
    puts, sent = putting(workers=1)
    puts.store([block(1)], 100)
    at = 0
    while at < len(sent) and not puts.done:
        acknowledge(puts, sent[at], held=at == 2 * FRAGMENTS - 1)
        at += 1
    assert sorted(put.fragment for put in sent) == sorted(2 * list(range(FRAGMENTS)))
    assert puts.done == 1
