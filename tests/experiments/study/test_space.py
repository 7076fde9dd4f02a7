"""Many small settings: how many there are, what is said of them, and that it is what the plot shows."""

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from experiments.study.adaptive import ALL_SEEDS, coarse, grouped, play
from experiments.study.options import DEFAULT_SWEEPS, parse_options
from experiments.study.player import FRESH_SEEDS, REPLAYED, Player
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.space import (
    ALL,
    MOST_NODES,
    SPACE,
    SYSTEMS,
    gains,
    settings_of,
    space_points,
)
from experiments.study.systems import Setting
from scenario import Scenario
from tests.experiments.study.made import run


def made(settings: int, pool_gain: float, by_nodes: float = 0.0) -> list[tuple[Point, Sample]]:
    """Figures in which the pool is sooner by a share, and by so much more at the most nodes."""
    draw = Random(1)
    done = []
    for point in space_points(Setting(), settings * len(SYSTEMS)):
        share = pool_gain + by_nodes * point.setting.nodes / MOST_NODES
        gain = share if point.system in ("switch", "lent_pool") else 0.0
        done.append((point, Sample((run((1 - gain) * (0.2 + 0.0001 * draw.random())),))))
    return done


def test_points_are_whole_settings_each_with_traffic_of_its_own() -> None:
    planned = list(space_points(Setting(), 52))
    assert len(planned) == 50
    assert {point.system for point in planned} == set(SYSTEMS)
    assert max(point.setting.nodes for point in planned) <= MOST_NODES
    seeds: list[tuple[int, str]] = []

    def simulate_until(scenarios, deadline_s):  # type: ignore[no-untyped-def]
        seeds.extend((scenario.workload.seed, scenario.storage.kind) for scenario in scenarios)
        return [run(0.2) for _ in scenarios]

    groups = grouped(planned)
    play(groups, 1, ALL_SEEDS, simulate_until, float("inf"))
    assert len(seeds) == 50  # once each
    assert sorted({seed for seed, _ in seeds}) == list(range(1, 11))
    assert all(group.decided for group in groups)
    assert [one.name for one in coarse([*groups[:4], *grouped(planned[20:])])] == ["space, 6 settings"]


def test_a_gain_that_grows_with_an_axis_is_told_by_that_axis() -> None:
    done = made(60, 0.05, by_nodes=0.2)
    found = gains(settings_of(done))
    low, high = (
        next(one for one in found if (one.what, one.part) == ("switch", part))
        for part in ("nodes low", "nodes high")
    )
    assert low.gain.high < high.gain.low
    whole = next(one for one in found if (one.what, one.part) == ("switch", ALL))
    assert whole.sooner == 1
    assert whole.gain.low > 0.05


def test_a_setting_of_which_something_is_missing_is_left_out() -> None:
    done = made(10, 0.1)
    assert len(settings_of(done[:-1])) == 9


def test_the_sweep_is_played_when_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert SPACE not in DEFAULT_SWEEPS
    named = parse_options(["--sweeps=space", "--points=500"], "study", "")
    assert named.sweeps == (SPACE,)
    assert named.points == 500


def test_the_settings_in_which_a_pool_led_by_most_are_played_again_with_fresh_seeds(tmp_path: Path) -> None:
    options = parse_options(
        ["--sweeps=space", "--points=60", "--seeds=2", f"--results={tmp_path}"], "study", ""
    )
    centre = Setting(requests=100)
    planned = list(space_points(centre, options.points))
    lucky = max(point.setting.nodes for point in planned)  # the pool leads where there are most nodes
    seen: list[tuple[int, int]] = []

    def simulate_until(scenarios: Sequence[Scenario], deadline_s: float) -> list[dict[str, Any] | None]:
        seen.extend((scenario.nodes.count, scenario.workload.seed) for scenario in scenarios)
        return [
            run(0.2 - 0.1 * (one.nodes.count == lucky and one.direct.front == "pool")) for one in scenarios
        ]

    player = Player(options, simulate_until, time.monotonic())
    player.play(SPACE, centre, planned)
    found = player.found()
    assert len(found.verdicts) == found.around == REPLAYED
    assert found.verdicts[0].setting.nodes == lucky
    assert {one.seeds for one in found.verdicts} == {2}
    fresh = {seed for _, seed in seen if seed > FRESH_SEEDS}
    assert fresh == {FRESH_SEEDS + 1, FRESH_SEEDS + 2}
    assert (lucky, FRESH_SEEDS + 1) in seen
