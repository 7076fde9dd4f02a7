"""Plays of real pools in turns, and how far their replays are off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.policies import plays
from experiments.policies.against import Figures
from experiments.policies.plays import WAYS, differences, in_sum, scenarios, ways
from experiments.validate.gauge import USUAL
from tests.experiments.policies.test_live import made_play


def figures(hits: float, saved_s: float) -> Figures:
    return Figures(hits, hits, saved_s, 5, 0, 7)


def row(told: tuple[float, float], live: tuple[float, float]) -> dict[str, Figures]:
    return dict(zip(WAYS, (figures(*told), figures(*told), figures(*live)), strict=True))


def test_in_sum_scenarios_weigh_by_what_they_saved() -> None:
    rows = [row((100, 99.0), (100, 100.0)), row((4, 2.0), (2, 1.0))]
    assert in_sum(rows, "told as live")["saved_s"].mean == pytest.approx(0.0)
    assert differences(rows, "told as live")["saved_s"].mean == pytest.approx((1 - 0.01) / 2)
    assert in_sum(rows, "told as live")["block_hits"].mean == pytest.approx(2 / 102)


def test_what_live_has_nothing_of_has_no_difference() -> None:
    found = row((5, 1.0), (5, 1.0))
    assert "evictions" not in in_sum([found], "told as live")
    assert "evictions" not in differences([found], "told as live")


def test_turns_of_a_seed_are_one_scenario(tmp_path: Path) -> None:
    play = made_play(tmp_path, lambda request: True)
    first, second, other = row((4, 1.0), (8, 2.0)), row((6, 3.0), (0, 0.0)), row((1, 1.0), (1, 1.0))
    rows = [plays.Row(seed, play, (USUAL,), one) for seed, one in ((1, first), (1, second), (2, other))]
    one, two = scenarios(rows)
    assert (one["told as live"], one["live"]) == (figures(5, 2.0), figures(4, 1.0))
    assert two == other


def test_a_replay_has_its_entries_as_late_as_the_machine_of_the_play_had(tmp_path: Path) -> None:
    play = made_play(tmp_path, lambda request: request > 2)
    usual, slow = replace(USUAL, entries_s=0.003), replace(USUAL, entries_s=2.003)
    hits = [ways(play, (reading, reading))["told as live"].block_hits for reading in (usual, slow)]
    assert hits == [10, 4]  # before it is put, and after a fetch more
