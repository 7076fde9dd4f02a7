"""Number of seeds of each comparison: ALL_SEEDS, or fewer if the time ends before.

All systems of a group see the same traffic (common random numbers): the same seeds, and as many of
them. The number is fixed beforehand and does not depend on results. So no interval is narrow only
because sampling stopped when it happened to be narrow. Comparisons that are wider than wanted in the
end (watched.py) are named.
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
"""Number of seeds of each sweep before any sweep gets more; with fewer, some intervals
are narrow by chance."""
ALL_SEEDS = 10

SimulateUntil = Callable[[Sequence[Scenario], float], Sequence[Figures | None]]
"""Function from scenarios and a deadline (of time.monotonic) to their figures; None for those
not done by then."""


@dataclass(slots=True)
class Group:
    """Points that are compared with one another, and their runs by seed."""

    name: str
    points: Sequence[Point]
    runs: list[list[Figures]] = field(default_factory=list)
    """Figures of each point, by seed."""
    seed_offset: int = 0
    """Number added to the group's seeds, so that settings that are not paired see different traffic."""
    most: int | None = None
    """Largest number of seeds, or None for as many as all others: a trace is one sample, and
    an hour takes long."""

    @property
    def sweep(self) -> str:
        """Return the sweep of the group."""
        return self.points[0].sweep if self.points else ""

    @property
    def samples(self) -> list[Sample]:
        """Return the sample of each point, with all its seeds."""
        return [Sample(tuple(run[at] for run in self.runs)) for at in range(len(self.points))]

    @property
    def spread(self) -> float:
        """Return the widest half interval among the watched pairs; infinite if there are too
        few seeds to know."""
        if len(self.runs) < 2:
            return 0.0 if self.most == 1 else float("inf")
        return spread(self.points, self.samples)

    @property
    def wanted(self) -> float:
        """Return the widest half interval that `spread` may be."""
        return wanted_share(self.points)

    @property
    def decided(self) -> bool:
        """Return whether the group has enough seeds and its intervals are as narrow as wanted."""
        few = FIRST_SEEDS if self.most is None else min(self.most, FIRST_SEEDS)
        return len(self.runs) >= few and self.spread <= self.wanted

    def lacks(self, seeds: int) -> bool:
        """Return whether the group has fewer than `seeds` seeds and may get more."""
        return len(self.runs) < (seeds if self.most is None else min(self.most, seeds))


@dataclass(frozen=True, slots=True)
class Coarse:
    """A group whose intervals are wider than wanted, with all seeds or because the time ended."""

    name: str
    seeds: int
    spread: float
    wanted: float


def grouped(points: Iterable[Point]) -> list[Group]:
    """Group the points: those of one sweep at one place are compared with one another."""
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
    """Return the most seeds that a point's group gets; None for as many as all others."""
    if point.setting.trace or point.sweep == SPACE:
        return 1
    return hour_seeds(point.setting.nodes) if point.sweep == HOUR else None


def play(
    groups: Sequence[Group], first_seed: int, seeds: int, simulate_until: SimulateUntil, deadline_s: float
) -> None:
    """Simulate until each group has `seeds` seeds; in each round, the groups with the fewest get one more.

    It ends early at the deadline (of time.monotonic). A group gets a seed for all its points or not at all,
    so that groups differ by one seed at most, if they did when it began.
    """
    while time.monotonic() < deadline_s:
        lacking = [group for group in groups if group.lacks(seeds)]
        fewest = min((len(group.runs) for group in lacking), default=0)
        wanted = [group for group in lacking if len(group.runs) == fewest]
        if not wanted or not _one_seed(wanted, first_seed, simulate_until, deadline_s):
            return


def _one_seed(
    groups: Sequence[Group], first_seed: int, simulate_until: SimulateUntil, deadline_s: float
) -> bool:
    """Simulate one more seed of each group; return whether any group got it."""
    scenarios = [
        seeded(point.scenario, first_seed + group.seed_offset + len(group.runs))
        for group in groups
        for point in group.points
    ]
    figures = iter(simulate_until(scenarios, deadline_s))
    any_done = False
    for group in groups:
        run = [next(figures) for _ in group.points]
        whole = [one for one in run if one is not None]
        if len(whole) == len(run):
            group.runs.append(whole)
            any_done = True
    return any_done


def coarse(groups: Sequence[Group]) -> list[Coarse]:
    """Return the groups that are wider than wanted or were not simulated, the widest of
    the simulated ones first."""
    wide = [group for group in groups if not group.decided]
    wide.sort(key=lambda group: (not group.runs, -group.spread / group.wanted))
    named = [Coarse(one.name, len(one.runs), one.spread, one.wanted) for one in wide if one.sweep != SPACE]
    space = sum(group.sweep == SPACE for group in wide)  # too many to name
    return [*named, Coarse(f"{SPACE}, {space} settings", 0, float("inf"), 0.0)] if space else named
