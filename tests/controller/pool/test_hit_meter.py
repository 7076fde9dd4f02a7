"""Hits from counters of fragments served."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.pool.hit_meter import (
    BUSY_SHARE,
    BUSY_SHARE_OF_ALL,
    MAX_PERIOD_S,
    MIN_PERIOD_S,
    READS_PER_S,
    HitMeter,
    next_period_s,
)

KEY, OTHER = b"k" * 18, b"o" * 18
SLOT = 64


def test_a_block_s_fragments_make_one_hit() -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, 4)
    assert list(meter.read({SLOT: 3})) == []
    assert list(meter.read({SLOT: 9})) == [(KEY, 2)]
    assert list(meter.read({SLOT: 12})) == [(KEY, 1)]


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 8))
def test_however_often_it_is_read_the_hits_are_the_same(steps: list[int], fragments: int) -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, fragments)
    counted = hits = 0
    for step in steps:
        counted += step
        hits += sum(times for _, times in meter.read({SLOT: counted}))
    assert hits == counted // fragments


def test_a_successor_in_the_slots_gets_no_hits_of_its_predecessor() -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, 4)
    meter.ended(SLOT)
    meter.started(OTHER, SLOT, 4)
    assert set(meter.slots()) == {SLOT}
    assert list(meter.read({SLOT: 400})) == []  # whose they are nobody knows
    assert list(meter.read({SLOT: 404})) == [(OTHER, 1)]


def test_a_successor_that_comes_after_a_reading_loses_nothing() -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, 4)
    meter.ended(SLOT)
    assert list(meter.read({SLOT: 400})) == []
    assert set(meter.slots()) == set()
    meter.started(OTHER, SLOT, 4)
    assert list(meter.read({SLOT: 404})) == [(OTHER, 1)]


def test_what_is_adopted_counts_from_the_first_reading() -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, 4, settled=False)
    assert list(meter.read({SLOT: 400})) == []
    assert list(meter.read({SLOT: 404})) == [(KEY, 1)]


def test_a_counter_that_fell_is_that_of_a_switch_that_started_again() -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, 4)
    assert list(meter.read({SLOT: 8})) == [(KEY, 2)]
    assert list(meter.read({SLOT: 1})) == []
    assert list(meter.read({SLOT: 5})) == [(KEY, 1)]


def test_slots_that_are_not_ours_are_left_out() -> None:
    assert list(HitMeter().read({SLOT: 8})) == []


def test_reading_takes_a_bounded_share_of_the_time() -> None:
    assert next_period_s(0.0) == MIN_PERIOD_S
    assert next_period_s(0.1) == 0.1 / BUSY_SHARE
    assert next_period_s(100.0) == MAX_PERIOD_S
    assert next_period_s(0.0, switches=20) == 20 / READS_PER_S
    assert next_period_s(0.01, switches=20) == pytest.approx(20 * 0.01 / BUSY_SHARE_OF_ALL)


def test_blocks_that_come_and_go_between_two_readings_take_no_memory() -> None:
    meter = HitMeter()
    meter.started(KEY, SLOT, 4)
    meter.ended(SLOT)
    tracemalloc.start()
    try:
        for _ in range(10_000):
            meter.started(KEY, SLOT, 4)
            meter.ended(SLOT)
        assert tracemalloc.get_traced_memory()[0] < 10_000
    finally:
        tracemalloc.stop()
