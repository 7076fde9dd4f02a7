"""The history of blocks is counted, in order and bounded."""

from controller.block_id import block_id
from controller.pool.block_history import MOST_BLOCKS, MOST_DECISIONS, MOST_HOT, MOST_TURNS, BlockHistory


def block(number: int) -> bytes:
    return block_id(3, number.to_bytes(4, "big").ljust(16, b"\0"))


def test_the_most_wanted_are_those_asked_for_most_in_the_pool_or_not() -> None:
    history = BlockHistory()
    history.reported(block(1), depth=4, times=3)
    history.hit(block(2), 5)
    history.reported(block(3), depth=0, times=2)
    history.hit(block(3), 4)
    assert [(key, one.wanted) for key, one in history.most_wanted(2)] == [(block(3), 6), (block(2), 5)]
    assert dict(history.most_wanted(3))[block(1)].depth == 4


def test_the_last_turns_of_a_block_are_kept() -> None:
    history = BlockHistory()
    for number in range(MOST_TURNS + 1):
        history.admitted(block(1), 0, float(number))
    ((_, record),) = history.most_wanted(1)
    turns = list(record.turns)
    assert (len(turns), turns[0], turns[-1][0]) == (MOST_TURNS, (1.0, "admitted"), MOST_TURNS)


def test_there_are_never_more_than_so_many_and_the_most_wanted_and_the_residents_stay() -> None:
    history = BlockHistory()
    history.admitted(block(0), 0, 0.0)
    history.reported(block(1), 0, 100)
    for number in range(2, 2 * MOST_BLOCKS):
        history.reported(block(number), 0, 1)
    left = [key for key, _ in history.most_wanted(3 * MOST_BLOCKS)]
    assert len(left) <= MOST_BLOCKS + 1
    assert left[0] == block(1)
    assert block(0) in left


def test_decisions_have_numbers_and_the_hits_since_the_block_came() -> None:
    history = BlockHistory()
    history.hit(block(0xABCD0000), 2)
    history.evicted(block(0xABCD0000), 0.0)
    history.admitted(block(0xABCD0000), 4, 1.0)
    history.hit(block(0xABCD0000), 7)
    history.evicted(block(0xABCD0000), 2.0)
    assert history.decisions[1:] == [
        {"number": 2, "what": "admitted", "key": "abcd0000", "depth": 4, "hits": 0},
        {"number": 3, "what": "evicted", "key": "abcd0000", "depth": 4, "hits": 7},
    ]
    assert history.hot_residents == []


def test_the_hottest_residents_come_first_and_those_never_hit_not_at_all() -> None:
    history = BlockHistory()
    for number, hits in ((1, 2), (2, 9), (3, 0)):
        history.admitted(block(number), number, 0.0)
        if hits:
            history.hit(block(number), hits)
    assert [(hot["depth"], hot["hits"]) for hot in history.hot_residents] == [(2, 9), (1, 2)]
    history.forget_residents()
    assert history.hot_residents == []


def test_what_is_shown_is_bounded() -> None:
    history = BlockHistory()
    for number in range(100):
        history.admitted(block(number), 0, 0.0)
        history.hit(block(number), 1)
    assert [one["number"] for one in history.decisions] == list(range(101 - MOST_DECISIONS, 101))
    assert len(history.hot_residents) == MOST_HOT


def test_what_was_in_the_pool_before_the_controller_is_counted_too() -> None:
    history = BlockHistory()
    history.hit(block(0x10000), 3)
    assert history.hot_residents == [{"key": "00010000", "depth": 0, "hits": 3}]
