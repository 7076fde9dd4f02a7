"""The streamer: which level each chunk of a chain gets, and when computing is the last one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.model.streamer import (
    CHUNK_BLOCKS,
    TEXT,
    BandwidthMeter,
    Chunk,
    Rung,
    Streamer,
    Waits,
    mean_level,
)

FINE, MIDDLE, COARSE = Rung(1, 300.0, 0.0), Rung(3, 200.0, 0.0), Rung(5, 100.0, 0.0)
RUNGS = (FINE, MIDDLE, COARSE)
AT_ONCE = Waits()


@dataclass(frozen=True)
class Prefill:
    """So long for each block that is computed."""

    block_s: float

    def __call__(self, computed: Collection[int]) -> float:
        return self.block_s * len(computed)


def streamer(
    rate: float, deadline_s: float, blocks: int = 9, block_s: float = 100.0, rungs: tuple[Rung, ...] = RUNGS
) -> Streamer:
    return Streamer(rungs, BandwidthMeter(rate, 1e9), range(blocks), deadline_s, Prefill(block_s))


def first(one: Streamer, now_s: float = 0.0, waits: Waits = AT_ONCE) -> Rung | None:
    chunk = one.next(now_s, waits)
    assert chunk is not None
    return chunk.rung


@pytest.mark.parametrize(
    ("deadline_s", "rung"), [(28, FINE), (27, FINE), (26, MIDDLE), (18, MIDDLE), (17, COARSE), (9, COARSE)]
)
def test_the_best_level_that_meets_the_deadline_is_taken(deadline_s: float, rung: Rung) -> None:
    """9 blocks at 100 bytes/s take 27, 18 or 9 s."""
    assert first(streamer(100.0, deadline_s)) is rung


def test_chunks_follow_one_another_to_the_end_of_the_chain() -> None:
    one = streamer(100.0, 1e9, blocks=7)
    chunks = [one.next(0.0, AT_ONCE) for _ in range(4)]
    assert chunks == [Chunk((0, 1, 2), FINE), Chunk((3, 4, 5), FINE), Chunk((6,), FINE), None]
    assert CHUNK_BLOCKS == 3


def test_a_chunk_that_came_slowly_makes_the_rest_coarser_and_a_fast_one_finer() -> None:
    meter = BandwidthMeter(100.0, 1e9)
    one = Streamer(RUNGS, meter, range(12), 40.0, Prefill(100.0))
    assert first(one) is FINE
    meter.report(900.0, 0.0, 22.5)  # 40 bytes/s: of 18 s that are left 9 blocks would take 67, 45, 23
    assert first(one, 22.5) is COARSE
    meter.report(300.0, 22.5, 25.5)  # 100 bytes/s: 14.5 s for 6 blocks
    assert first(one, 25.5) is MIDDLE


def test_text_is_the_last_level_and_only_where_computing_is_sooner() -> None:
    slow = streamer(1.0, 5.0, block_s=2.0)
    assert first(slow) is None
    assert first(slow) is None
    assert slow.text == [0, 1, 2, 3, 4, 5]
    assert first(streamer(1.0, 5.0, block_s=200.0)) is COARSE


def test_what_is_to_be_computed_is_counted_in_what_is_left() -> None:
    """After a chunk of text the rest must leave the GPU time to compute it."""
    meter = BandwidthMeter(1.0, 1e9)
    one = Streamer(RUNGS, meter, range(6), 20.0, Prefill(4.0))
    assert first(one) is None
    meter.report(1000.0, 0.0, 10.0)
    assert meter.bytes_per_s(0.0) == 1.0  # never above the link's
    meter = BandwidthMeter(100.0, 1e9)
    one = Streamer(RUNGS, meter, range(6), 20.0, Prefill(4.0))
    meter.report(1.0, 0.0, 1.0)
    assert first(one) is None
    meter.report(100.0, 1.0, 2.0)
    assert first(one, 2.0) is MIDDLE  # 6 s of 9 until 20 s less 12 s of computing; the finest takes 9


def test_a_busy_gpu_or_decoder_is_waited_for_anyway() -> None:
    assert first(streamer(100.0, 30.0), 0.0, Waits(gpu_s=30.0)) is FINE
    decoded = tuple(Rung(rung.level, rung.block_bytes, 1.0) for rung in RUNGS)
    assert first(streamer(100.0, 28.0, rungs=decoded)) is decoded[0]
    assert first(streamer(100.0, 27.9, rungs=decoded)) is decoded[1]
    assert first(streamer(100.0, 27.9, rungs=decoded), 0.0, Waits(coder_s=18.9)) is decoded[1]
    late = first(streamer(100.0, 27.9, rungs=decoded, block_s=1000.0), 0.0, Waits(coder_s=19.0))
    assert late is decoded[2]  # in time at no level: the smallest


def test_a_rate_that_was_measured_long_ago_is_no_longer_believed() -> None:
    meter = BandwidthMeter(100.0, believed_s=5.0)
    assert meter.bytes_per_s(0.0) == 100.0
    meter.report(10.0, 0.0, 1.0)
    assert meter.bytes_per_s(6.0) == 10.0
    assert meter.bytes_per_s(6.1) == 100.0
    meter.report(0.0, 7.0, 8.0)  # nothing came, so nothing was measured
    assert meter.bytes_per_s(8.0) == 100.0


def test_what_cannot_be_streamed_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one level"):
        Streamer((), BandwidthMeter(1.0, 1.0), range(3), 1.0, Prefill(1.0))
    with pytest.raises(ValueError, match="chunks of at least one block"):
        Streamer(RUNGS, BandwidthMeter(1.0, 1.0), range(3), 1.0, Prefill(1.0), chunk_blocks=0)


def test_the_mean_level_is_that_of_what_came() -> None:
    assert mean_level({"1": 3, "5": 1, TEXT: 7}) == 2.0
    assert mean_level({TEXT: 7}) is None
    assert mean_level({}) is None


POSITIVE = st.floats(0.01, 1e3)
LADDERS = st.lists(st.tuples(POSITIVE, st.floats(0.0, 10.0)), min_size=1, max_size=4).map(
    lambda rungs: tuple(
        Rung(number, size, decode_s)
        for number, (size, decode_s) in enumerate(sorted(rungs, key=lambda rung: -rung[0]))
    )
)


@dataclass
class Played:
    """A stream at a rate that does not change."""

    chunks: list[Chunk]
    token_s: float


def play(rungs: tuple[Rung, ...], rate: float, blocks: int, deadline_s: float, block_s: float) -> Played:
    """Blocks arrive one after the other, and are decoded in turn."""
    meter = BandwidthMeter(rate, 1e9)
    one = Streamer(rungs, meter, range(blocks), deadline_s, Prefill(block_s))
    now_s = decoded_s = 0.0
    chunks = []
    while (chunk := one.next(now_s, Waits(coder_s=max(0.0, decoded_s - now_s)))) is not None:
        chunks.append(chunk)
        if chunk.rung is None:
            continue
        began_s = now_s
        for _ in chunk.depths:
            now_s += chunk.rung.block_bytes / rate
            decoded_s = max(decoded_s, now_s) + chunk.rung.decode_s
        meter.report(len(chunk.depths) * chunk.rung.block_bytes, began_s, now_s)
    return Played(chunks, max(now_s, decoded_s) + block_s * len(one.text))


@given(LADDERS, POSITIVE, st.integers(1, 40), POSITIVE, POSITIVE)
def test_each_block_is_streamed_once_in_order(
    rungs: tuple[Rung, ...], rate: float, blocks: int, deadline_s: float, block_s: float
) -> None:
    played = play(rungs, rate, blocks, deadline_s, block_s)
    assert [depth for chunk in played.chunks for depth in chunk.depths] == list(range(blocks))
    assert all(len(chunk.depths) <= CHUNK_BLOCKS for chunk in played.chunks)


@given(LADDERS, POSITIVE, st.integers(1, 40), POSITIVE, POSITIVE)
def test_at_the_rate_that_was_expected_a_level_that_was_in_time_is_in_time(
    rungs: tuple[Rung, ...], rate: float, blocks: int, deadline_s: float, block_s: float
) -> None:
    played = play(rungs, rate, blocks, deadline_s, block_s)
    slack_s = 1e-6 * (1 + deadline_s)

    def token_s(rung: Rung) -> float:
        return play((rung,), rate, blocks, 1e12, block_s).token_s

    if any(token_s(rung) <= deadline_s - slack_s for rung in rungs):
        assert played.token_s <= deadline_s + slack_s
        assert all(chunk.rung is not None for chunk in played.chunks)
    elif all(token_s(rung) > deadline_s + slack_s for rung in rungs):
        # The sooner of the coarsest level and computing, unless both together are in time.
        sooner_s = min(token_s(rungs[-1]), block_s * blocks)
        assert played.token_s <= max(deadline_s, sooner_s) * (1 + 1e-6) + slack_s


@given(POSITIVE, POSITIVE, st.integers(1, 40), POSITIVE, POSITIVE)
def test_a_faster_link_or_a_later_deadline_never_makes_a_level_coarser(
    rate: float, more: float, blocks: int, deadline_s: float, block_s: float
) -> None:
    order = [*RUNGS, None]

    def place(rate: float, deadline_s: float) -> int:
        return order.index(first(streamer(rate, deadline_s, blocks, block_s)))

    assert place(rate + more, deadline_s) <= place(rate, deadline_s)
    assert place(rate, deadline_s + more) <= min(2, place(rate, deadline_s)) or place(rate, deadline_s) == 3
