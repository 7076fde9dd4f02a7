"""All comparisons get the same number of seeds, in whole groups, and nothing is begun after the deadline."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from experiments.study.adaptive import ALL_SEEDS, FIRST_SEEDS, Group, coarse, grouped, play
from experiments.study.point import Point
from experiments.study.systems import BOUND, Setting, system
from scenario import Scenario
from tests.experiments.study.made import run

FOREVER = float("inf")


class World:
    """TTFT by system and seed; distributed DRAM's share of recomputing's is `noise` more every other seed."""

    def __init__(self, noise: float, stop_after: int = 10**9) -> None:
        self.noise, self.left = noise, stop_after
        self.seeds: list[tuple[int, str]] = []

    def simulate_until(self, scenarios: Sequence[Scenario], deadline_s: float) -> list[dict[str, Any] | None]:
        found: list[dict[str, Any] | None] = []
        for scenario in scenarios:
            self.left -= 1
            seed = scenario.workload.seed
            self.seeds.append((seed, scenario.storage.kind))
            common = 1.0 + seed / 10  # traffic differs by far more than systems do
            own = 0.5 + self.noise * (seed % 2) if scenario.storage.kind == "peers" else 1.0
            found.append(run(common * own) if self.left >= 0 else None)
        return found


def group(name: int = 16) -> list[Point]:
    setting = Setting(nodes=name)
    return [
        Point("rivals", name, kind, setting, system(kind, setting)) for kind in ("recompute", "distributed")
    ]


def test_what_is_certain_and_what_is_not_get_the_same_seeds() -> None:
    """Nobody waits for an interval to be narrow, nor for a difference to be sure."""
    for noise in (0.0, 0.1):
        world, groups = World(noise), grouped([*group(16), *group(32)])
        play(groups, 5, ALL_SEEDS, world.simulate_until, FOREVER)
        assert [len(one.runs) for one in groups] == [ALL_SEEDS, ALL_SEEDS]
        for kind in ("peers", "stores"):
            mine = [seed for seed, one in world.seeds if one == kind]
            assert sorted(mine) == sorted(2 * list(range(5, 5 + ALL_SEEDS)))


def test_what_is_wider_than_wanted_is_named() -> None:
    known, open_, few = (grouped(group()) for _ in range(3))
    play(known, 1, ALL_SEEDS, World(noise=0.0).simulate_until, FOREVER)
    assert coarse(known) == []
    play(open_, 1, ALL_SEEDS, World(noise=0.1).simulate_until, FOREVER)
    assert open_[0].spread > 0.01
    assert [(one.name, one.seeds) for one in coarse(open_)] == [("rivals 16", ALL_SEEDS)]
    play(few, 1, FIRST_SEEDS - 1, World(noise=0.0).simulate_until, FOREVER)
    assert [(one.name, one.seeds) for one in coarse(few)] == [("rivals 16", FIRST_SEEDS - 1)]
    assert coarse(few)[0].spread == few[0].spread


def test_who_has_fewest_is_next_so_that_an_early_end_leaves_all_alike() -> None:
    """One group begins with two seeds more; ten simulations later there is one seed of difference."""
    groups = grouped([*group(16), *group(32)])
    play(groups[:1], 1, 2, World(noise=0.0).simulate_until, FOREVER)
    play(groups, 1, ALL_SEEDS, World(noise=0.0, stop_after=10).simulate_until, FOREVER)
    assert [len(one.runs) for one in groups] == [4, 3]


def test_a_seed_counts_only_if_the_whole_group_has_it() -> None:
    groups = grouped([*group(16), *group(32)])
    play(groups, 1, ALL_SEEDS, World(noise=0.0, stop_after=3).simulate_until, FOREVER)
    assert [len(one.runs) for one in groups] == [1, 0]
    assert len({len(sample.runs) for sample in groups[0].samples}) == 1


def test_nothing_is_begun_after_the_deadline() -> None:
    world, groups = World(noise=0.1), grouped(group())
    play(groups, 1, ALL_SEEDS, world.simulate_until, time.monotonic() - 1)
    assert world.seeds == []
    assert [one.seeds for one in coarse(groups)] == [0]


def test_what_more_seeds_would_not_change_is_played_once() -> None:
    setting = Setting(trace="conversation.jsonl")
    points = [Point("rivals", 1, kind, setting, system(kind, setting)) for kind in ("recompute", "cxl")]
    world, groups = World(noise=0.1), grouped(points)
    play(groups, 1, ALL_SEEDS, world.simulate_until, FOREVER)
    assert len(world.seeds) == 2
    assert coarse(groups) == []


@pytest.mark.parametrize(("nodes", "seeds"), [(16, 3), (256, 1)])
def test_an_hour_that_takes_long_gets_few_seeds(nodes: int, seeds: int) -> None:
    setting = Setting(nodes=nodes)
    points = [Point("hour", nodes, kind, setting, system(kind, setting)) for kind in ("recompute", "cxl")]
    world, groups = World(noise=0.0001), grouped(points)
    play(groups, 1, FIRST_SEEDS, world.simulate_until, FOREVER)
    play(groups, 1, ALL_SEEDS, world.simulate_until, FOREVER)
    assert [len(group.runs) for group in groups] == [seeds]
    assert coarse(groups) == []


def test_a_pool_is_watched_against_what_it_has_to_beat_at_its_cost() -> None:
    """How uncertain a dearer rival or the bound is, nobody has to know."""
    times = {"switch": (1.0, 1.96), "stores": (1.1, 1.47), "distributed": (1.2, 9.0), BOUND: (0.9, 0.0)}
    setting = Setting()
    points = [Point("rivals", 16, name, setting, system(name, setting)) for name in times]

    def known(noisy: str) -> Group:
        runs = [
            [run(mean_s + 0.1 * (seed % 2) * (name == noisy), cost) for name, (mean_s, cost) in times.items()]
            for seed in range(FIRST_SEEDS)
        ]
        return Group("rivals 16", points, runs)

    assert not known("stores").decided
    assert known("distributed").decided
    assert known(BOUND).decided


def test_a_decision_is_watched_against_all_that_stands_beside_it() -> None:
    """4 storage nodes cost more than the pool: no rival at its cost, but what the tornado is about."""
    setting = Setting(nodes=32)
    kinds = (("switch", 2, 1.96), ("stores", 4, 2.03), ("distributed", 2, 0.91))
    for sweep, found in (("tornado", 0.1), ("rivals", 0.0)):
        points = [
            Point(sweep, "as assumed", name, replace(setting, stores=stores), system(name, setting))
            for name, stores, _ in kinds
        ]
        runs = [
            [run(0.2 + 0.05 * (seed % 2) * (name == "stores"), cost) for name, _, cost in kinds]
            for seed in range(FIRST_SEEDS)
        ]
        assert (Group("one", points, runs).spread > 0.01) == bool(found)


def test_pools_that_contend_with_different_rivals_are_not_watched_against_one_another() -> None:
    setting = Setting(nodes=32)
    kinds = (("switch", 1.96), ("lent_pool", 0.49), ("lent", 0.0), ("distributed", 0.91))

    def spread(noisy: str) -> float:
        points = [Point("tornado", "load halved", name, setting, system(name, setting)) for name, _ in kinds]
        runs = [
            [run(0.2 + 0.05 * (seed % 2) * (name in noisy.split()), cost) for name, cost in kinds]
            for seed in range(FIRST_SEEDS)
        ]
        return Group("one", points, runs).spread

    assert spread("lent_pool lent") == spread("switch distributed") == 0.0
    assert spread("lent") > 0.01


def test_the_map_is_watched_where_its_verdict_falls_and_within_half_a_percent() -> None:
    """A pool that is far behind may be as uncertain as it likes; 0.8 % around the nearest is too much."""
    setting = Setting()
    kinds = {"recompute": (1.5, 0.0), "lent": (1.0, 0.0), "lent_pool": (0.99, 0.5), "switch": (2.0, 2.0)}

    def known(noisy: str, by: float, sweep: str = "map") -> Group:
        points = [Point(sweep, "1", name, setting, system(name, setting)) for name in kinds]
        runs = [
            [
                run(mean_s * (1 + by * (seed % 2) * (name == noisy)), cost)
                for name, (mean_s, cost) in kinds.items()
            ]
            for seed in range(FIRST_SEEDS)
        ]
        return Group("map 1", points, runs)

    assert known("lent_pool", 0.02).spread > known("lent_pool", 0.005).spread > 0
    assert not known("lent_pool", 0.008).decided
    assert known("lent_pool", 0.008, "rivals").decided
    assert known("lent", 0.0).decided


def test_points_of_a_place_are_one_group() -> None:
    names = [one.name for one in grouped([*group(16), *group(32), *group(16)])]
    assert names == ["rivals 16", "rivals 32"]
    assert Group("empty", []).decided is False
