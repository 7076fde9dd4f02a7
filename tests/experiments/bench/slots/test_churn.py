"""Long churn of blocks that differ in length leaves the pool usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.config import PoolSize
from controller.policies import OWN_POLICIES
from experiments.bench.slots.__main__ import main
from experiments.bench.slots.churn import play
from tests.experiments.summaries import assert_described
from workload.compression import BlockSizes, find_compression
from workload.generate import generate

TRACE = generate("agents", 1, 300)
SIZES = BlockSizes(65, find_compression("cachegen"))
SLOTS = 40 * 65


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_less_than_a_twentieth_of_the_slots_is_unusable(policy: str) -> None:
    size = PoolSize(int(SLOTS / SIZES.mean_fragments), SLOTS, SIZES.most_fragments, SLOTS // 25)
    churn = play(TRACE, policy, SIZES, size, 1)
    assert churn.admitted > 5 * churn.held_blocks
    assert churn.unusable < 0.05
    assert churn.no_slot == 0


def test_blocks_of_one_length_need_no_spare_slots() -> None:
    churn = play(TRACE, "lru", BlockSizes(13), PoolSize(200, 200 * 13, 13), 1)
    assert (churn.in_the_way, churn.no_slot) == (0, 0)
    assert churn.unusable < 1e-9


def test_the_command_leaves_a_page(tmp_path: Path) -> None:
    given = ["--requests", "60", "--pool-blocks", "20", "--policies", "lru", "--spare", "0.04"]
    assert main([*given, "--results", str(tmp_path)]) == 0
    assert_described("bench slots", tmp_path / "summary.json")
    page = (tmp_path / "report.html").read_text()
    for shown in ("Slots after a day", "lru", "seed"):
        assert shown in page
