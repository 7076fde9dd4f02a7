"""How many seeds each comparison gets: until what is compared is decided, or the budget ends.

All systems of a group see the same traffic (common random numbers): the same seeds, as many for each. It is
watched by the ratio of pairs of its systems, seed by seed (watched.py); it is decided when the 95 % interval
of each of these ratios is as narrow as wanted, and gets another seed as long as it is not, MOST_SEEDS at
most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from experiments.simulator.scenario import Scenario
from experiments.study.point import Point
from experiments.study.results import Figures
from experiments.study.sample import Sample, seeded
from experiments.study.space import SPACE
from experiments.study.watched import spread, wanted_share

FEWEST_SEEDS = 5
"""With fewer some intervals are narrow by chance, and the narrow ones are those that get no more."""
MOST_SEEDS = 10
AT_ONCE = 8
"""Groups, the widest ones, that get another seed before it is looked at anew which these are."""

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
    def sweep(self) -> str:
        """That it belongs to."""
        return self.points[0].sweep if self.points else ""

    @property
    def samples(self) -> list[Sample]:
        """Of each point, with all its seeds."""
        return [Sample(tuple(run[at] for run in self.runs)) for at in range(len(self.points))]

    @property
    def spread(self) -> float:
        """The widest half interval among the watched pairs; infinite where nothing is known yet."""
        if len(self.runs) < 2:
            return 0.0 if self.exhausted else float("inf")
        return spread(self.points, self.samples)

    @property
    def wanted(self) -> float:
        """What `spread` may be."""
        return wanted_share(self.points)

    @property
    def decided(self) -> bool:
        """Whether it has seeds enough and is as narrow as wanted."""
        if self.exhausted:
            return bool(self.runs)
        return len(self.runs) >= FEWEST_SEEDS and self.spread <= self.wanted

    @property
    def settled(self) -> bool:
        """Whether it needs no more seeds."""
        return len(self.runs) >= MOST_SEEDS or self.decided


@dataclass(frozen=True, slots=True)
class Coarse:
    """A group that was left wider than wanted: the budget ended, or it had the most seeds."""

    name: str
    seeds: int
    spread: float
    wanted: float


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

    `seeds`: exactly so many to each instead. Widest is what lies farthest beyond what is wanted of it. Ends
    early at the deadline, a seed of a group whole or not at all.
    """
    least = FEWEST_SEEDS if seeds is None else seeds
    while time.monotonic() < deadline_s:
        wanted = [group for group in groups if len(group.runs) < least and not _ended(group)]
        if not wanted and seeds is None:
            unsettled = [group for group in groups if group.runs and not group.settled]
            wanted = sorted(unsettled, key=lambda one: -one.spread / one.wanted)[:AT_ONCE]
        if not wanted or not _one_seed(wanted, first_seed, some, deadline_s):
            return


def take_known(groups: Sequence[Group], first_seed: int, some: Some) -> None:
    """Seeds that cost nothing, because other sweeps have the same simulations: what is shown twice agrees."""
    for group in groups:
        while len(group.runs) < MOST_SEEDS and not _ended(group):
            if not group.runs or not _one_seed([group], first_seed, some, 0.0):
                break


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
    """Those that are wider than wanted, or out; the widest of the played ones first."""
    wide = [group for group in groups if not group.decided]
    wide.sort(key=lambda group: (not group.runs, -group.spread / group.wanted))
    named = [Coarse(one.name, len(one.runs), one.spread, one.wanted) for one in wide if one.sweep != SPACE]
    space = sum(group.sweep == SPACE for group in wide)  # too many to name them
    return [*named, Coarse(f"{SPACE}, {space} settings", 0, float("inf"), 0.0)] if space else named
