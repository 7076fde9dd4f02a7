"""What a system is worth against another: seconds until the first token, GPU seconds, and dollars."""

from __future__ import annotations

from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from experiments.study.results import Figures
from experiments.study.sample import STEADY, Sample, figure
from scenario.hardware import Prices

SECOND_DOLLARS = Prices().node_per_hour / 3600
"""What a saved second of waiting is worth by convention: a second of the node that the request waits for."""


@dataclass(frozen=True, slots=True)
class Benefit:
    """Over a reference, in the second half, per hour; 95 % intervals over pairs of the same seed."""

    saved_gpu_s: Interval
    extra_dollars: float
    """Hardware that caches, beyond the reference's."""
    net_dollars: Interval
    """Seconds saved until the first token, of all requests of an hour like the second half, at their price,
    less the extra hardware. A cold start is no rate: see Sample.start_wait_s."""


def benefit(sample: Sample, reference: Sample) -> Benefit:
    """Return the benefit of one system over another, both with the same demand and seeds."""
    extra = sample.cost - reference.cost
    saved, saved_gpu = [], []
    for mine, other in zip(sample.runs, reference.runs, strict=True):
        saved.append(saved_an_hour_s(mine, other, STEADY))
        saved_gpu.append(saved_gpu_an_hour_s(mine, other))
    net = mean_interval([one * SECOND_DOLLARS - extra for one in saved])
    return Benefit(mean_interval(saved_gpu), extra, net)


def saved_an_hour_s(mine: Figures, other: Figures, path: tuple[str, str]) -> float:
    """Return what all requests of an hour wait less, by a mean of two runs of one seed. By that of the second
    half, the cold start is left out: it comes once, however long the hours after it go on."""
    hourly = other["completed"] * 3600 / other["duration_s"]
    return float((figure(other, path) - figure(mine, path)) * hourly)


def saved_gpu_an_hour_s(mine: Figures, other: Figures) -> float:
    """Return what all nodes of an hour prefill less, by two runs of one seed."""
    return float((other["prefill_s"] - mine["prefill_s"]) * 3600 / other["duration_s"])
