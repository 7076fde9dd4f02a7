"""Panels of the report: plots, the table under them, and a sentence if a reader needs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.adaptive import Coarse
from experiments.study.figures import Plot
from experiments.study.point import Point
from experiments.study.rivals import Done
from experiments.study.sample import MEAN, P99, STEADY, Sample, ratio
from experiments.study.setting_map import Verdicts
from experiments.study.systems import NAMES
from experiments.study.table import Table

TTFT = "mean time to first token, s"
TAIL = "p99 of the time to first token, s"


@dataclass(frozen=True, slots=True)
class Panel:
    """One section of the page."""

    title: str
    plots: Sequence[Plot]
    table: Table
    note: str = ""
    """Text that a reader needs to understand the plots."""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that was simulated within the time."""

    done: Done
    verdicts: Sequence[Verdicts] = ()
    steady: Sequence[Verdicts] = ()
    """Verdicts of the same settings, by the second half of the arrivals."""
    around: int = 0
    """Number of verdicts whose settings were chosen because a pool came nearest there or close by."""
    coarse: Sequence[Coarse] = field(default_factory=tuple)


def places(done: Done, sweep: str) -> list[Any]:
    """Return the values of a sweep, in order."""
    return list(dict.fromkeys(point.value for point, _ in done if point.sweep == sweep))


def by_system(done: Done, sweep: str) -> dict[str, dict[Any, Sample]]:
    """Return the samples of one sweep by system and value."""
    found: dict[str, dict[Any, Sample]] = {}
    for point, sample in done:
        if point.sweep == sweep:
            found.setdefault(point.system, {})[point.value] = sample
    return found


def labelled(done: Done, sweep: str, value: Any) -> dict[str, Sample]:
    """Return the samples at one place by label."""
    return {point.label: sample for point, sample in done if (point.sweep, point.value) == (sweep, value)}


def part(done: Done, sweep: str, *values: Any) -> list[tuple[Point, Sample]]:
    """Return the points of a sweep, at these places or at all."""
    return [pair for pair in done if pair[0].sweep == sweep and (not values or pair[0].value in values)]


def dots(
    mine: Mapping[str, Sample], steady: bool = False, kinds: Mapping[str, Sequence[str]] | None = None
) -> Plot:
    """Return a plot of means, of means and p99 over recomputing's seed by seed, and of
    p99; the fastest first."""
    order = sorted(mine, key=lambda name: mine[name].mean(*MEAN))
    means = {name: mine[name].interval(*MEAN) for name in order}
    drawn: dict[str, dict[str, Interval]] = {TTFT.replace(" to ", "<br>to "): means}
    nothing = [name for name in means if name.startswith(NAMES["recompute"])]
    reference = min(nothing, key=len, default=None)  # the one without a variant, if there is one
    if reference is not None:
        drawn["mean over recomputing's,<br>seed by seed"] = {
            name: ratio(mine[name], mine[reference], *MEAN) for name in means
        }
        drawn["p99 over recomputing's,<br>seed by seed"] = {
            name: ratio(mine[name], mine[reference], *P99) for name in means
        }
    if steady:
        drawn["mean in the second half,<br>s"] = {name: mine[name].interval(*STEADY) for name in means}
    drawn["p99 of the time<br>to first token, s"] = {name: mine[name].interval(*P99) for name in means}
    return figures.columns(drawn, kinds)
