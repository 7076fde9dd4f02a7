"""An hour of traffic at each number of nodes, for steady state and for the ledger.

The other sweeps run about half a minute of traffic: even in its second half, nodes are still filling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from commands.intervals import Interval, mean_interval
from experiments.study.benefit import saved_an_hour_s
from experiments.study.point import Point
from experiments.study.sample import MEAN, TTFT, Sample
from experiments.study.systems import BOUND, Setting, system
from workload.shapes import ALL_SHAPES

HOUR = "hour"
LOADS = {4: 4.0, 16: 4.0, 64: 2.0, 256: 0.5}
"""Load by number of nodes.

An hour is to take a minute of CPU at most, which is 187,200 requests, about as many as Mooncake's trace has
for 256 nodes. So each of 64 nodes gets half, and each of 256 an eighth, of the load of each of 4 or 16 nodes.
"""
QUICK_FAN_INS = (4, 16)
HOUR_S, QUICK_HOUR_S = 3600.0, 60.0
SEEDS, FEW_SEEDS = 3, 1
"""Numbers of seeds of an hour that takes less than 40 s of CPU, and of a longer one."""
LARGEST_SEEDED = 16
"""Largest number of nodes with which an hour takes less than that."""
CHOSEN = 16
"""Number of nodes with which all other purchases and the bound are simulated too."""
SYSTEMS = ("recompute", "lent", "stores", "switch")
MORE_SYSTEMS = ("lent_pool", "answered_pool", BOUND, "distributed", "cxl")
MORE_STORES = 4


def hour_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Yield an hour of agents at each number of nodes."""
    seconds = QUICK_HOUR_S if quick else HOUR_S
    rate = ALL_SHAPES["agents"].requests_per_s
    for nodes in QUICK_FAN_INS if quick else LOADS:
        load = LOADS[nodes]
        requests = round(seconds * rate * load * nodes / 16)
        setting = replace(centre, nodes=nodes, load=load, requests=requests, reuse=1.0)
        for name in (*SYSTEMS, *(MORE_SYSTEMS if nodes == CHOSEN else ())):
            yield Point(HOUR, nodes, name, setting, system(name, setting))
        if nodes == CHOSEN:
            split = replace(setting, stores=MORE_STORES)
            yield Point(HOUR, nodes, "stores", split, system("stores", split))


def hour_seeds(nodes: int) -> int:
    """Return the number of seeds of an hour with this number of nodes."""
    return SEEDS if nodes <= LARGEST_SEEDED else FEW_SEEDS


def hour_sample(sample: Sample) -> Sample:
    """Return a sample of long runs without their first twelfth, which is cold.

    With several seeds, each run has the mean over its other parts; with one seed, its parts stand for runs.
    """
    parts = [run["parts_ttft_s"][1:] for run in sample.runs]
    if len(parts) == 1:
        return Sample(tuple({**sample.runs[0], TTFT: part} for part in parts[0]))
    return Sample(
        tuple({**run, TTFT: _mean(own)} for run, own in zip(sample.runs, parts, strict=True)),
    )


def compared_by(sample: Sample) -> str:
    """Return what the intervals of an hour are over: seeds, or twelfths of the hour."""
    return "seeds" if len(sample.runs) > 1 else "twelfths"


def saved_s(mine: Sample, other: Sample) -> Interval:
    """Return the seconds of waiting that an hour saves, if its first twelfth is like the others."""
    pairs = zip(hour_sample(mine).runs, hour_sample(other).runs, strict=True)
    return mean_interval([saved_an_hour_s(own, theirs, MEAN) for own, theirs in pairs])


def _mean(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each figure over the parts; of a percentile, the mean of the parts' percentiles."""
    return {name: fmean(part[name] for part in parts) for name in parts[0]}
