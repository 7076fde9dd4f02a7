"""What a digest costs stays of the order that the emulation can bear."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.bench.control.bursts import frames
from experiments.bench.control.measure import LIST_S, Bench, Bursts, entries_told
from experiments.bench.switch.errors import BenchError
from hostlib.protocol import wire

LOOK_MS = 5.0
"""First and last entry are seen in any order within a look, which a busy machine makes longer."""
MOST_US = 1000.0
"""Several times what it takes on a quiet machine (docs/emulation.md), a fraction of what it once took."""


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_digest_costs_controller_and_switch_little_cpu_time(tmp_path: Path) -> None:
    with Bench(tmp_path, "lru") as bench:
        cost = bench.round(Bursts(blocks=600, burst=20, bursts_per_s=20))
    assert 0 < cost.total_us < MOST_US
    assert cost.writes < cost.digests  # bursts are written together


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_entries_are_seen_to_follow_their_list(tmp_path: Path) -> None:
    with Bench(tmp_path, "lru", 64) as bench:
        few, many = bench.entries(2, (2, 20))
    assert (few.digests, many.digests) == (2, 20)
    assert all(0 < each.first_ms <= each.last_ms + LOOK_MS for each in (few, many))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_packets_pass_a_switch_that_rested(tmp_path: Path) -> None:
    with Bench(tmp_path, "lru", 64) as bench:
        assert 0 < bench.rest_s(3) < 0.05


def test_every_block_is_new_to_the_switch() -> None:
    made = [wire.decode(frame[wire.FRAME_HEADER_BYTES :]) for seed in (1, 2) for frame in frames(seed, 50)]
    assert len({message.key for message in made}) == len(made)
    assert {message.fragment for message in made} == {0}


def test_an_entry_that_does_not_come_once_is_a_late_one() -> None:
    in_time, late = "[2, 0.02, 0.03]", "[2, null, null]"
    (told,) = entries_told([late, in_time, in_time], (2,))
    assert (told.first_ms, told.last_ms) == pytest.approx((1000 * (0.02 - LIST_S), 1000 * (0.03 - LIST_S)))
    with pytest.raises(BenchError, match="half of the entries did not come"):
        entries_told([late, in_time, late], (2,))
