"""What is shown of a pool is its last decisions and its hottest blocks, and never more than that."""

from controller.block_id import block_id
from controller.pool.spotlight import MOST_DECISIONS, MOST_HOT, Spotlight


def block(number: int) -> bytes:
    return block_id(3, number.to_bytes(2, "big").ljust(16, b"\0"))


def test_decisions_have_numbers_and_the_hits_of_what_left() -> None:
    spotlight = Spotlight()
    spotlight.admitted(block(0xABCD), depth=4)
    spotlight.hit(block(0xABCD), 7)
    spotlight.evicted(block(0xABCD))
    assert spotlight.decisions == [
        {"number": 1, "what": "admitted", "key": "abcd0000", "depth": 4, "hits": 0},
        {"number": 2, "what": "evicted", "key": "abcd0000", "depth": 4, "hits": 7},
    ]
    assert spotlight.hottest == []


def test_the_hottest_come_first_and_those_never_hit_not_at_all() -> None:
    spotlight = Spotlight()
    for number, hits in ((1, 2), (2, 9), (3, 0)):
        spotlight.admitted(block(number), depth=number)
        if hits:
            spotlight.hit(block(number), hits)
    assert [(hot["depth"], hot["hits"]) for hot in spotlight.hottest] == [(2, 9), (1, 2)]


def test_it_is_bounded() -> None:
    spotlight = Spotlight()
    for number in range(100):
        spotlight.admitted(block(number), depth=0)
        spotlight.hit(block(number), 1)
    assert [one["number"] for one in spotlight.decisions] == list(range(101 - MOST_DECISIONS, 101))
    assert len(spotlight.hottest) == MOST_HOT


def test_what_was_there_before_the_controller_is_counted_too() -> None:
    spotlight = Spotlight()
    spotlight.hit(block(1), 3)
    assert spotlight.hottest == [{"key": "00010000", "depth": 0, "hits": 3}]
