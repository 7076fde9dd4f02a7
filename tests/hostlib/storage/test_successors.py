"""What a storage node learns of chains from the order in which it is asked."""

from __future__ import annotations

from hostlib.protocol.wire import fingerprint
from hostlib.storage.successors import MAX_SENDERS, Successors


def key(number: int) -> bytes:
    return bytes([number]) * 16


def get(
    number: int, depth: int, chain_blocks: int = 10, parent: int | None = None
) -> tuple[bytes, int, int, int]:
    return key(number), depth, chain_blocks, fingerprint(key(number - 1)) if parent is None else parent


def test_blocks_follow_one_another_as_a_sender_asks_for_them() -> None:
    successors = Successors()
    for depth, number in ((0, 1), (1, 2), (4, 5), (7, 8)):  # the others have another home
        successors.seen("a", *get(number, depth))
    assert successors.rest(key(1), 10) == [key(2), key(5), key(8)]
    assert successors.rest(key(2), 1) == [key(5)]
    assert successors.rest(key(1), 0) == []
    assert successors.rest(key(9), 10) == []


def test_senders_are_told_apart() -> None:
    successors = Successors()
    for depth in range(3):
        successors.seen("a", *get(1 + depth, depth))
        successors.seen("b", *get(11 + depth, depth))
    assert successors.rest(key(1), 10) == [key(2), key(3)]
    assert successors.rest(key(11), 10) == [key(12), key(13)]


def test_another_chain_does_not_follow() -> None:
    successors = Successors()
    successors.seen("a", *get(1, 3))
    successors.seen("a", *get(20, 0))  # begins anew
    successors.seen("a", *get(30, 1, chain_blocks=11))
    successors.seen("a", *get(40, 2, chain_blocks=11, parent=7))  # of another parent
    for number in (1, 20, 30):
        assert successors.rest(key(number), 10) == []


def test_the_newest_successor_counts_and_circles_end() -> None:
    successors = Successors()
    successors.learn([key(1), key(2), key(3)])
    successors.learn([key(1), key(4), key(1)])
    assert successors.rest(key(1), 10) == [key(4), key(1)]


def test_memory_is_bounded() -> None:
    successors = Successors(max_blocks=3)
    successors.learn([key(n) for n in range(10)])
    assert [successors.rest(key(n), 1) != [] for n in range(9)] == [False] * 6 + [True] * 3
    for sender in range(MAX_SENDERS + 1):
        successors.seen(str(sender), *get(100, 0))
    successors.seen("0", *get(101, 1))
    assert successors.rest(key(100), 1) == []
