"""How soon entries follow their digests, and how long a rested switch takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.bench.switch.errors import BenchError
from experiments.validate.control.measure import LIST_S, Bench, median_entries

LOOK_MS = 5.0
"""First and last entry are seen in any order within a look, which a busy machine makes longer."""


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_entries_are_seen_to_follow_their_list(tmp_path: Path) -> None:
    with Bench(tmp_path, 64) as bench:
        few, many = bench.entries(2, (2, 20))
    assert (few.digests, many.digests) == (2, 20)
    assert all(0 < each.first_ms <= each.last_ms + LOOK_MS for each in (few, many))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_packets_pass_a_switch_that_rested(tmp_path: Path) -> None:
    with Bench(tmp_path, 64) as bench:
        assert 0 < bench.rest_s(3) < 0.05


def test_an_entry_that_does_not_come_once_is_a_late_one() -> None:
    in_time, late = "[2, 0.02, 0.03]", "[2, null, null]"
    (medians,) = median_entries([late, in_time, in_time], (2,))
    assert (medians.first_ms, medians.last_ms) == pytest.approx(
        (1000 * (0.02 - LIST_S), 1000 * (0.03 - LIST_S))
    )
    with pytest.raises(BenchError, match="half of the entries did not come"):
        median_entries([late, in_time, late], (2,))
