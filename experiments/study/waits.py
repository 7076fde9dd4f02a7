"""Cost of empty memory: how much longer requests wait because nodes were cold."""

from __future__ import annotations

from commands.intervals import Interval, mean_interval
from experiments.study.sample import MEAN, Sample, figure


def cold_cost(cold: Sample, warm: Sample) -> Interval:
    """Return the seconds that all requests together wait longer than the same ones on warm nodes, once."""
    return mean_interval(
        [
            (figure(one, MEAN) - figure(other, MEAN)) * one["completed"]
            for one, other in zip(cold.runs, warm.runs, strict=True)
        ]
    )
