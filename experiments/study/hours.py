"""An hour at each fan-in: what steady state is read from, and what the ledger counts.

The other sweeps play half a minute or so, of which the second half still finds nodes that are filling.
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
"""Nodes -> load. An hour is to take about a minute of CPU at most, which is 187,200 requests: nearly those
that Mooncake's trace has for 256 nodes. So each of 64 nodes gets half, each of 256 an eighth, of what one of
4 or 16 nodes gets."""
QUICK_FAN_INS = (4, 16)
HOUR_S, QUICK_HOUR_S = 3600.0, 60.0
SEEDS, FEW_SEEDS = 3, 1
"""Of an hour that takes less than 40 s of CPU, and of a longer one."""
LARGEST_SEEDED = 16
"""Nodes of an hour that takes less."""
CHOSEN = 16
"""Nodes at which all that could be bought instead is played, and the bound."""
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
    """Return how many an hour of so many nodes is played with."""
    return SEEDS if nodes <= LARGEST_SEEDED else FEW_SEEDS


def hour_sample(sample: Sample) -> Sample:
    """Long runs without their first twelfth, which is cold: of several seeds the mean over the other parts of
    each; of one seed its parts, as if they were runs."""
    parts = [run["parts_ttft_s"][1:] for run in sample.runs]
    if len(parts) == 1:
        return Sample(tuple({**sample.runs[0], TTFT: part} for part in parts[0]))
    return Sample(
        tuple({**run, TTFT: _mean(own)} for run, own in zip(sample.runs, parts, strict=True)),
    )


def compared_by(sample: Sample) -> str:
    """Return what intervals of an hour are over."""
    return "seeds" if len(sample.runs) > 1 else "twelfths"


def saved_s(mine: Sample, other: Sample) -> Interval:
    """Return seconds of waiting that an hour saves, its first twelfth as the others."""
    pairs = zip(hour_sample(mine).runs, hour_sample(other).runs, strict=True)
    return mean_interval([saved_an_hour_s(own, theirs, MEAN) for own, theirs in pairs])


def _mean(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of each figure; of a percentile the mean of the parts' own."""
    return {name: fmean(part[name] for part in parts) for name in parts[0]}
