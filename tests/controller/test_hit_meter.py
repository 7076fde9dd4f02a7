"""Hits from packet counters."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.hit_meter import BUSY_SHARE, MAX_PERIOD_S, MIN_PERIOD_S, HitMeter, next_period_s

KEY = b"k" * 16


def test_a_block_s_fragments_make_one_hit() -> None:
    meter = HitMeter()
    meter.started(KEY, 4, 0)
    assert list(meter.read({KEY: 3})) == []
    assert list(meter.read({KEY: 9})) == [(KEY, 2)]
    assert list(meter.read({KEY: 12})) == [(KEY, 1)]


@settings(deadline=None)  # machines that run tests are busy
@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 8), st.integers(0, 20))
def test_however_often_it_is_read_the_hits_are_the_same(
    steps: list[int], fragments: int, own_packets: int
) -> None:
    meter = HitMeter()
    meter.started(KEY, fragments, own_packets)
    counted = hits = 0
    for step in steps:
        counted += step
        hits += sum(times for _, times in meter.read({KEY: counted}))
    assert hits == max(0, counted - own_packets) // fragments


def test_a_block_that_was_there_already_counts_from_the_first_reading() -> None:
    meter = HitMeter()
    meter.found(KEY, 4)
    assert list(meter.read({KEY: 400})) == []
    assert list(meter.read({KEY: 404})) == [(KEY, 1)]


def test_a_counter_that_fell_is_a_new_one() -> None:
    meter = HitMeter()
    meter.started(KEY, 4, 0)
    assert list(meter.read({KEY: 8})) == [(KEY, 2)]
    assert list(meter.read({KEY: 1})) == []
    assert list(meter.read({KEY: 5})) == [(KEY, 1)]


def test_blocks_that_are_not_ours_are_left_out() -> None:
    meter = HitMeter()
    meter.started(KEY, 1, 0)
    meter.ended(KEY)
    assert list(meter.read({KEY: 8, b"other": 9})) == []


def test_reading_takes_a_bounded_share_of_the_time() -> None:
    assert next_period_s(0.0) == MIN_PERIOD_S
    assert next_period_s(0.1) == 0.1 / BUSY_SHARE
    assert next_period_s(100.0) == MAX_PERIOD_S
