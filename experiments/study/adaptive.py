"""How many seeds each comparison gets: ALL_SEEDS, fewer only where the budget ends before.

All systems of a group see the same traffic (common random numbers): the same seeds, as many for each. The
number is fixed beforehand and does not depend on what is found, so no interval is narrow because it was
looked at when it happened to be. What is not as narrow as wanted in the end (watched.py) is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from experiments.study.hours import HOUR, hour_seeds
from experiments.study.point import Point
from experiments.study.results import Figures
from experiments.study.sample import Sample, seeded
from experiments.study.space import SPACE
from experiments.study.watched import spread, wanted_share
from scenario import Scenario

FIRST_SEEDS = 5
"""Of each sweep before any gets more; with fewer some intervals are narrow by chance."""
ALL_SEEDS = 10

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
    most: int | None = None
    """Seeds, where it gets no more than these: a trace is one sample of traffic, an hour takes long."""

    @property
    def sweep(self) -> str:
        """Return the sweep that it belongs to."""
        return self.points[0].sweep if self.points else ""

    @property
    def samples(self) -> list[Sample]:
        """Return the sample of each point, with all its seeds."""
        return [Sample(tuple(run[at] for run in self.runs)) for at in range(len(self.points))]

    @property
    def spread(self) -> float:
        """Return the widest half interval among the watched pairs; infinite where nothing is known yet."""
        if len(self.runs) < 2:
            return 0.0 if self.most == 1 else float("inf")
        return spread(self.points, self.samples)

    @property
    def wanted(self) -> float:
        """Return what `spread` may be."""
        return wanted_share(self.points)

    @property
    def decided(self) -> bool:
        """Return whether it has seeds enough and is as narrow as wanted."""
        few = FIRST_SEEDS if self.most is None else min(self.most, FIRST_SEEDS)
        return len(self.runs) >= few and self.spread <= self.wanted

    def lacks(self, seeds: int) -> bool:
        """Return whether it has fewer than so many, and more of them would say anything."""
        return len(self.runs) < (seeds if self.most is None else min(self.most, seeds))


@dataclass(frozen=True, slots=True)
class Coarse:
    """A group that was left wider than wanted: with all seeds, or because the budget ended."""

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
            most=_most(members[0]),
        )
        for (sweep, place), members in found.items()
    ]


def _most(point: Point) -> int | None:
    """Seeds that a point's group gets at most; None: as many as all."""
    if point.setting.trace or point.sweep == SPACE:
        return 1
    return hour_seeds(point.setting.nodes) if point.sweep == HOUR else None


def play(groups: Sequence[Group], first_seed: int, seeds: int, some: Some, deadline_s: float) -> None:
    """Give so many seeds to each group: a round to those that have the fewest, and anew.

    Ends early at the deadline, a seed of a group whole or not at all; by then groups differ by one seed at
    most, if they did when it began.
    """
    while time.monotonic() < deadline_s:
        lacking = [group for group in groups if group.lacks(seeds)]
        fewest = min((len(group.runs) for group in lacking), default=0)
        wanted = [group for group in lacking if len(group.runs) == fewest]
        if not wanted or not _one_seed(wanted, first_seed, some, deadline_s):
            return


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
    """Return those that are wider than wanted, or out; the widest of the played ones first."""
    wide = [group for group in groups if not group.decided]
    wide.sort(key=lambda group: (not group.runs, -group.spread / group.wanted))
    named = [Coarse(one.name, len(one.runs), one.spread, one.wanted) for one in wide if one.sweep != SPACE]
    space = sum(group.sweep == SPACE for group in wide)  # too many to name them
    return [*named, Coarse(f"{SPACE}, {space} settings", 0, float("inf"), 0.0)] if space else named
