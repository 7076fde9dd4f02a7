"""Benefit of one system over another: seconds until the first token, GPU seconds, and dollars."""

from __future__ import annotations

from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from experiments.study.results import Figures
from experiments.study.sample import STEADY, Sample, figure
from scenario.hardware import Prices

SECOND_DOLLARS = Prices().node_per_hour / 3600
"""Dollars for a saved second of waiting: by convention, the price of a second of the node
that is waited for."""


@dataclass(frozen=True, slots=True)
class Benefit:
    """Benefit over a reference in the second half, per hour; 95 % intervals over pairs with the same seed."""

    saved_gpu_s: Interval
    extra_dollars: float
    """Dollars an hour for hardware that caches, beyond the reference's."""
    net_dollars: Interval
    """Dollars an hour for the seconds saved until the first token, less the extra hardware.

    The hour is like the second half. The cold start comes once, so that it is
    no rate: see Sample.start_wait_s.
    """


def benefit(sample: Sample, reference: Sample) -> Benefit:
    """Return the benefit of one system over another with the same demand and seeds."""
    extra = sample.cost - reference.cost
    saved, saved_gpu = [], []
    for mine, other in zip(sample.runs, reference.runs, strict=True):
        saved.append(saved_an_hour_s(mine, other, STEADY))
        saved_gpu.append(saved_gpu_an_hour_s(mine, other))
    net = mean_interval([one * SECOND_DOLLARS - extra for one in saved])
    return Benefit(mean_interval(saved_gpu), extra, net)


def saved_an_hour_s(mine: Figures, other: Figures, path: tuple[str, str]) -> float:
    """Return the seconds that all requests of an hour wait less, from a mean of two runs with the same seed.

    With the mean of the second half, the cold start is left out: it comes once, however many hours follow.
    """
    hourly = other["completed"] * 3600 / other["duration_s"]
    return float((figure(other, path) - figure(mine, path)) * hourly)


def saved_gpu_an_hour_s(mine: Figures, other: Figures) -> float:
    """Return the seconds that all nodes prefill less in an hour, from two runs with the same seed."""
    return float((other["prefill_s"] - mine["prefill_s"]) * 3600 / other["duration_s"])
