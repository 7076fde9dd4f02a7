"""make soak, two short rounds on a real network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commands.command import Screen
from commands.verbosity import QUIET
from experiments.faults.soak import Soaked, SoakOptions, soak


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_nothing_is_wrong_lost_or_left_over_after_two_rounds(tmp_path: Path) -> None:
    soaked = soak(Screen(QUIET), SoakOptions(minutes=0.1, round_s=3.0, rate_per_s=15.0, results=tmp_path))
    assert len(soaked.rounds) == 2
    assert sum(one.operations for one in soaked.rounds) == 2 * 3 * 3 * 15
    assert (soaked.wrong_blocks, soaked.lost_blocks, soaked.lost_slots, soaked.left_over) == (0, 0, 0, [])
    assert "s1" in soaked.growth
    assert (tmp_path / "log.jsonl").read_text()
    assert not [goal for one in soaked.rounds for goal in one.missed(may_fail=False, may_refuse=False)]


def test_growth_files_slots_and_what_is_left_over_miss_the_goal() -> None:
    assert Soaked([], {"a": 0.04}, {"a": 0}, 0, 0, 0, []).missed() == []
    missed = Soaked([], {"a": 0.06}, {"a": 2}, 3, 1, 1, ["process 7 (a)"]).missed()
    assert missed == [
        "a grew by 6.0%", "a has 2 more files open", "3 slots are lost", "1 blocks were wrong in the end",
        "1 blocks are lost", "left over: process 7 (a)",
    ]  # fmt: skip
