"""The search for the break-even finds known edges."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from experiments.simulator.scenario import Scenario
from experiments.study.benefit import SECOND_DOLLARS
from experiments.study.sample import Sample
from experiments.study.search import CAPACITIES_GB, STEPS, break_even
from experiments.study.systems import Setting


class Known:
    """A world in which pools of `first_gb` and more save a second of every request's ten."""

    def __init__(self, first_gb: float, dollars_per_gb: float) -> None:
        self.first_gb, self.dollars_per_gb = first_gb, dollars_per_gb
        self.computed: list[Scenario] = []

    def __call__(self, scenarios: Sequence[Scenario]) -> list[Sample]:
        self.computed += scenarios
        return [Sample((self._figures(scenario),) * 2) for scenario in scenarios]

    def _figures(self, scenario: Scenario) -> dict[str, Any]:
        pool_gb = scenario.pool.size_gb if scenario.pool.memory == "dram" else 0.0
        ttft_s = 9.0 if pool_gb >= self.first_gb else 10.0
        return {
            "ttft_s": {"mean": ttft_s},
            "steady_ttft_s": {"mean": ttft_s},
            "completed": 1000,
            "duration_s": 3600.0,
            "prefill_s": 1.0,
            "cache_dollars_per_hour": pool_gb * self.dollars_per_gb,
        }


def test_bisection_closes_in_on_the_edges() -> None:
    hourly = 1000 * SECOND_DOLLARS
    world = Known(first_gb=20.0, dollars_per_gb=hourly / 1000.0)  # pays from 20 GB up to 1,000 GB
    edges = break_even([Setting()], quick=False, compute=world)
    (edge,) = [edge for edge in edges if edge.against == "stores"]
    assert edge.from_gb is not None
    assert edge.to_gb is not None
    step = math.log(CAPACITIES_GB[2] / CAPACITIES_GB[1]) / 2**STEPS
    assert 0 <= math.log(edge.from_gb / 20.0) <= step
    assert 0 <= math.log(1000.0 / edge.to_gb) <= step
    assert edge.best is not None
    assert edge.best.net_dollars.mean == pytest.approx(hourly * (1 - edge.from_gb / 1000.0))


def test_where_nothing_pays_nothing_is_searched() -> None:
    world = Known(first_gb=1e9, dollars_per_gb=1.0)
    edges = break_even([Setting(), Setting(nodes=4)], quick=False, compute=world)
    assert all(edge.from_gb is None and edge.best is None for edge in edges)
    assert len(world.computed) == 2 * (4 + len(CAPACITIES_GB))
