"""How many seeds each comparison gets: until what is compared is decided, or the budget ends.

All systems of a group see the same traffic (common random numbers): the same seeds, as many for each. It is
watched by the ratio of pairs of its systems, seed by seed; it is decided when the 95 % interval of each of
these ratios is within ±1 % of its mean, and gets another seed as long as it is not, MOST_SEEDS at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from experiments.simulator.scenario import Scenario
from experiments.study.point import Point
from experiments.study.results import Figures
from experiments.study.sample import MEAN, Sample, ratio, seeded
from experiments.study.space import SPACE
from experiments.study.systems import BOUND, CENTRAL, POOLS

FEWEST_SEEDS = 3
MOST_SEEDS = 10
DECIDED_SHARE = 0.01
WATCHED = 3
"""Pairs that decide how many seeds a group without a pool gets."""

Some = Callable[[Sequence[Scenario], float], Sequence[Figures | None]]
"""Figures of scenarios, as many as are there by a deadline (of time.monotonic)."""


@dataclass(slots=True)
class Group:
    """Points that are compared with one another, and their runs by seed."""

    name: str
    points: Sequence[Point]
    runs: list[list[Figures]] = field(default_factory=list)
    """By seed, of each point."""
    seed_offset: int = 0
    """Added to its seeds: settings that are no pairs of one another see different traffic."""
    exhausted: bool = False
    """More seeds would say nothing: a trace is one sample of traffic."""

    @property
    def samples(self) -> list[Sample]:
        """Of each point, with all its seeds."""
        return [Sample(tuple(run[at] for run in self.runs)) for at in range(len(self.points))]

    @property
    def spread(self) -> float:
        """The widest half interval among the watched pairs; infinite where nothing is known yet."""
        if len(self.runs) < 2:
            return 0.0 if self.exhausted else float("inf")
        samples = self.samples
        halves = [ratio(samples[one], samples[other], *MEAN).half for one, other in self._pairs(samples)]
        return max(halves, default=0.0)

    @property
    def settled(self) -> bool:
        """Whether it needs no more seeds."""
        most = len(self.runs) >= MOST_SEEDS or (self.exhausted and bool(self.runs))
        return most or (len(self.runs) >= FEWEST_SEEDS and self.spread <= DECIDED_SHARE)

    def _pairs(self, samples: Sequence[Sample]) -> Iterator[tuple[int, int]]:
        """Each system with a pool and its strongest rivals at its cost, with all others and central ones.

        Where there is no pool, neighbours by mean, the fastest first.
        """
        order = sorted(range(len(samples)), key=lambda at: samples[at].mean(*MEAN))
        names = [point.system for point in self.points]
        pools = [at for at in order if names[at] in POOLS]
        if not pools:
            yield from list(pairwise(order))[:WATCHED]
        for pool in pools:
            rivals = [
                at
                for at in order
                if names[at] not in (*POOLS, BOUND) and samples[at].cost <= samples[pool].cost
            ]
            central = [at for at in rivals if names[at] in CENTRAL]
            yield from ((pool, rival) for rival in {*rivals[:1], *central[:1]})


@dataclass(frozen=True, slots=True)
class Coarse:
    """A group that the budget left undecided."""

    name: str
    seeds: int
    spread: float


def grouped(points: Iterable[Point]) -> list[Group]:
    """Points of one sweep at one place are compared with one another."""
    found: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        found.setdefault((point.sweep, str(point.place)), []).append(point)
    return [
        Group(
            f"{sweep} {place}".strip(),
            members,
            seed_offset=members[0].value if sweep == SPACE else 0,
            exhausted=bool(members[0].setting.trace) or sweep in ("hour", SPACE),
        )
        for (sweep, place), members in found.items()
    ]


def play(groups: Sequence[Group], first_seed: int, seeds: int | None, some: Some, deadline_s: float) -> None:
    """Seeds for all groups: FEWEST_SEEDS to each, then more to those that are widest.

    `seeds`: exactly so many to each instead. Ends early at the deadline, a seed of a group whole or not at
    all.
    """
    least = FEWEST_SEEDS if seeds is None else seeds
    while time.monotonic() < deadline_s:
        wanted = [group for group in groups if len(group.runs) < least and not _ended(group)]
        if not wanted and seeds is None:
            wanted = sorted(
                (group for group in groups if group.runs and not group.settled), key=lambda one: -one.spread
            )
        if not wanted or not _one_seed(wanted, first_seed, some, deadline_s):
            return


def _ended(group: Group) -> bool:
    return group.exhausted and bool(group.runs)


def _one_seed(groups: Sequence[Group], first_seed: int, some: Some, deadline_s: float) -> bool:
    """Another seed to each; whether any got it."""
    scenarios = [
        seeded(point.scenario, first_seed + group.seed_offset + len(group.runs))
        for group in groups
        for point in group.points
    ]
    figures = iter(some(scenarios, deadline_s))
    any_done = False
    for group in groups:
        run = [next(figures) for _ in group.points]
        whole = [one for one in run if one is not None]
        if len(whole) == len(run):
            group.runs.append(whole)
            any_done = True
    return any_done


def coarse(groups: Sequence[Group]) -> list[Coarse]:
    """Those that the budget left undecided, or out."""
    return [Coarse(group.name, len(group.runs), group.spread) for group in groups if not group.settled]
