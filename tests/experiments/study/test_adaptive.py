"""Seeds go where differences are not known yet, in whole groups, and nothing is begun after the deadline."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from experiments.simulator.scenario import Scenario
from experiments.study.adaptive import FEWEST_SEEDS, MOST_SEEDS, Group, coarse, grouped, play, take_known
from experiments.study.point import Point
from experiments.study.systems import BOUND, Setting, system
from tests.experiments.study.made import run

FOREVER = float("inf")


class World:
    """TTFT by system and seed; distributed DRAM's share of recomputing's is `noise` more every other seed."""

    def __init__(self, noise: float, stop_after: int = 10**9) -> None:
        self.noise, self.left = noise, stop_after
        self.seeds: list[tuple[int, str]] = []

    def some(self, scenarios: Sequence[Scenario], deadline_s: float) -> list[dict[str, Any] | None]:
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


def test_what_is_certain_gets_the_fewest_seeds_and_the_same_for_all() -> None:
    world, groups = World(noise=0.0), grouped(group())
    play(groups, 5, None, world.some, FOREVER)
    assert [seed for seed, kind in world.seeds if kind == "peers"] == list(range(5, 5 + FEWEST_SEEDS))
    assert [seed for seed, kind in world.seeds if kind == "stores"] == list(range(5, 5 + FEWEST_SEEDS))
    assert coarse(groups) == []


def test_what_is_uncertain_gets_more_and_is_named_when_that_does_not_suffice() -> None:
    world, groups = World(noise=0.1), grouped(group())
    play(groups, 1, None, world.some, FOREVER)
    assert len(groups[0].runs) == MOST_SEEDS
    assert groups[0].spread > 0.01
    assert [(one.name, one.seeds) for one in coarse(groups)] == [("rivals 16", MOST_SEEDS)]
    few = grouped(group())
    play(few, 1, 4, World(noise=0.1).some, FOREVER)
    assert [(one.name, one.seeds) for one in coarse(few)] == [("rivals 16", 4)]
    assert coarse(few)[0].spread == few[0].spread


def test_a_seed_counts_only_if_the_whole_group_has_it() -> None:
    groups = grouped([*group(16), *group(32)])
    play(groups, 1, None, World(noise=0.0, stop_after=3).some, FOREVER)
    assert [len(one.runs) for one in groups] == [1, 0]
    assert len({len(sample.runs) for sample in groups[0].samples}) == 1


def test_nothing_is_begun_after_the_deadline() -> None:
    world, groups = World(noise=0.1), grouped(group())
    play(groups, 1, None, world.some, time.monotonic() - 1)
    assert world.seeds == []
    assert [one.seeds for one in coarse(groups)] == [0]


@pytest.mark.parametrize("sweep", ["hour", "rivals"])
def test_what_more_seeds_would_not_change_is_played_once(sweep: str) -> None:
    setting = Setting(trace="" if sweep == "hour" else "conversation.jsonl")
    points = [Point(sweep, 1, kind, setting, system(kind, setting)) for kind in ("recompute", "cxl")]
    world, groups = World(noise=0.1), grouped(points)
    play(groups, 1, None, world.some, FOREVER)
    assert len(world.seeds) == 2
    assert coarse(groups) == []


def test_a_pool_is_watched_against_what_it_has_to_beat_at_its_cost() -> None:
    """The bound and a dearer rival are certain; one that is cheaper is not, and gets seeds."""
    times = {"switch": (1.0, 1.96), "stores": (1.1, 1.47), "distributed": (1.2, 9.0), BOUND: (0.9, 0.0)}
    setting = Setting()
    points = [Point("rivals", 16, name, setting, system(name, setting)) for name in times]

    def known(noisy: str) -> Group:
        runs = [
            [run(mean_s + 0.1 * (seed % 2) * (name == noisy), cost) for name, (mean_s, cost) in times.items()]
            for seed in range(FEWEST_SEEDS)
        ]
        return Group("rivals 16", points, runs)

    assert not known("stores").settled
    assert known("distributed").settled
    assert known(BOUND).settled


def test_what_is_widest_gets_its_seeds_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that swings by half gets all ten while one that is nearly known waits for the time to end."""
    monkeypatch.setattr("experiments.study.adaptive.AT_ONCE", 1)
    wide, near = grouped(group(16)), grouped(group(32))
    swings = {16: 0.5, 32: 0.02}
    order: list[int] = []

    def some(scenarios: Sequence[Scenario], deadline_s: float) -> list[dict[str, Any] | None]:
        order.extend(dict.fromkeys(scenario.nodes.count for scenario in scenarios))
        return [
            run(1.0 + swings[one.nodes.count] * (one.storage.kind == "peers") * (one.workload.seed % 2))
            for one in scenarios
        ]

    play([*near, *wide], 1, None, some, FOREVER)
    extra = order[2 * FEWEST_SEEDS :]
    assert extra == sorted(extra)
    assert extra.count(16) == MOST_SEEDS - FEWEST_SEEDS
    assert extra.count(32) > 0


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
            for seed in range(FEWEST_SEEDS)
        ]
        assert (Group("one", points, runs).spread > 0.01) == bool(found)


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
            for seed in range(FEWEST_SEEDS)
        ]
        return Group("map 1", points, runs)

    assert known("lent_pool", 0.02).spread > known("lent_pool", 0.005).spread > 0
    assert not known("lent_pool", 0.008).settled
    assert known("lent_pool", 0.008, "rivals").settled
    assert known("lent", 0.0).settled


def test_what_another_sweep_has_played_is_used_and_nothing_else_is_begun() -> None:
    """Two groups of the same simulations, of which one needed more seeds, end with the same ones."""
    known: dict[int, dict[str, Any]] = {seed: run(1.0) for seed in range(1, 8)}
    begun: list[int] = []

    def some(scenarios: Sequence[Scenario], deadline_s: float) -> list[dict[str, Any] | None]:
        begun.extend(seed for one in scenarios if (seed := one.workload.seed) not in known and deadline_s)
        return [known.get(one.workload.seed) for one in scenarios]

    groups = grouped(group(16))
    play(groups, 1, FEWEST_SEEDS, some, FOREVER)
    take_known([*groups, Group("out", group(32))], 1, some)
    assert len(groups[0].runs) == 7
    assert begun == []


def test_points_of_a_place_are_one_group() -> None:
    names = [one.name for one in grouped([*group(16), *group(32), *group(16)])]
    assert names == ["rivals 16", "rivals 32"]
    assert Group("empty", []).settled is False
