"""The break-even, by search: a coarse grid finds between which values the answer changes, bisection where."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from experiments.simulator.scenario import Scenario
from experiments.study.benefit import Benefit, benefit
from experiments.study.sample import Sample
from experiments.study.systems import BASELINES, Setting, system

CAPACITIES_GB = (0.1, 4.0, 128.0, 4000.0)
STEPS = 4
QUICK_STEPS = 2
Compute = Callable[[Sequence[Scenario]], Sequence[Sample]]
"""Samples of scenarios, each with all seeds."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Where the pool begins, or ceases, to pay for one setting; None where it never does."""

    setting: Setting
    against: str
    """The reference: one of systems.NAMES, or "best" for the best of the three baselines."""
    from_gb: float | None
    """Smallest pool that pays."""
    to_gb: float | None
    """Largest pool that pays, among those tried."""
    best_gb: float | None
    best: Benefit | None
    """At the pool that earns most."""


@dataclass(slots=True)
class _Trial:
    """Benefits by pool size, as they become known."""

    setting: Setting
    against: str
    reference: Sample
    known: dict[float, Benefit]

    def gaps(self) -> Iterator[tuple[float, float]]:
        """Neighbouring sizes with different answers."""
        sizes = sorted(self.known)
        for one, other in pairwise(sizes):
            if self.known[one].pays != self.known[other].pays:
                yield one, other

    def edge(self) -> Edge:
        paying = sorted(size for size, found in self.known.items() if found.pays)
        if not paying:
            return Edge(self.setting, self.against, None, None, None, None)
        best = max(paying, key=lambda size: self.known[size].net_dollars.mean)
        return Edge(self.setting, self.against, paying[0], paying[-1], best, self.known[best])


def break_even(settings: Sequence[Setting], quick: bool, compute: Compute) -> list[Edge]:
    """For each setting, against its storage nodes without a pool and against the best baseline."""
    trials = _coarse(settings, compute)
    for _ in range(QUICK_STEPS if quick else STEPS):
        wanted = [(trial, math.sqrt(one * other)) for trial in trials for one, other in trial.gaps()]
        scenarios = [_pool(trial.setting, size) for trial, size in wanted]
        for (trial, size), sample in zip(wanted, compute(scenarios), strict=True):
            trial.known[size] = benefit(sample, trial.reference)
    return [trial.edge() for trial in trials]


def _pool(setting: Setting, pool_gb: float) -> Scenario:
    return system("switch", replace(setting, pool_gb=pool_gb))


def _coarse(settings: Sequence[Setting], compute: Compute) -> list[_Trial]:
    names = ("stores", *BASELINES)
    scenarios = [system(name, setting) for setting in settings for name in names]
    scenarios += [_pool(setting, size) for setting in settings for size in CAPACITIES_GB]
    samples = list(compute(scenarios))
    references, pools = samples[: len(settings) * len(names)], samples[len(settings) * len(names) :]
    trials = []
    for place, setting in enumerate(settings):
        mine = references[place * len(names) : (place + 1) * len(names)]
        grid = pools[place * len(CAPACITIES_GB) : (place + 1) * len(CAPACITIES_GB)]
        best = max(mine[1:], key=lambda found: benefit(found, mine[0]).net_dollars.mean)
        for against, reference in (("stores", mine[0]), ("best", best)):
            known = {size: benefit(found, reference) for size, found in zip(CAPACITIES_GB, grid, strict=True)}
            trials.append(_Trial(setting, against, reference, known))
    return trials


def surface_settings(centre: Setting, quick: bool) -> list[Setting]:
    """The grid of the surface: fan-in by reuse."""
    fan_ins: Sequence[Any] = (4, 32) if quick else (2, 8, 32, 128)
    reuses = (0.5, 1.0) if quick else (0.25, 0.5, 0.75, 1.0)
    return [replace(centre, nodes=nodes, reuse=reuse) for nodes in fan_ins for reuse in reuses]
