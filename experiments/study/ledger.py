"""What managing the pool costs by the number of nodes, against what it earns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from experiments.intervals import Interval, mean_interval
from experiments.simulator.measured import digests_cpu_s
from experiments.study.benefit import SECOND_DOLLARS
from experiments.study.point import Point
from experiments.study.sample import MEAN, P99, STEADY, Sample, figure, ratio
from experiments.study.systems import Setting, system

FAN_INS = (4, 16, 64, 256)
QUICK_FAN_INS = (4, 16)
REQUESTS_A_NODE = 25
ENTRY_BYTES = 128
"""Of a table entry in the embedded switch (docs/performance.md), and a block has one."""


def ledger_points(centre: Setting, quick: bool) -> Iterator[Point]:
    """Two storage nodes with a pool and without."""
    for nodes in QUICK_FAN_INS if quick else FAN_INS:
        requests = centre.requests if quick else max(centre.requests, REQUESTS_A_NODE * nodes)
        setting = replace(centre, nodes=nodes, requests=requests)
        for name in ("recompute", "stores", "switch"):
            yield Point("ledger", nodes, name, setting, system(name, setting))


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger; everything per hour but `table_mb`."""

    nodes: int
    seeds: int
    requests: Interval
    digests: Interval
    writes: Interval
    """P4Runtime Write requests."""
    updates: Interval
    messages_mb: Interval
    cpu_s: Interval
    """Measured cost of a digest at controller and switch, times their number, without reading counters."""
    table_mb: float
    """Entries of all switches, full pools."""
    extra_dollars: float
    saved_s: Interval
    """Of waiting, against the same storage nodes without a pool, in steady state."""
    saved_gpu_s: Interval
    against_recompute_s: Interval
    sooner: Interval
    """Share of the mean first token of the same storage nodes, cold start included."""
    tail: Interval
    """The same of p99."""

    @property
    def saved_dollars(self) -> Interval:
        """Saved waiting at the price of a node's second."""
        return SECOND_DOLLARS * self.saved_s


def entry(nodes: int, switches: int, found: dict[str, Sample]) -> Entry:
    """The row of one number of nodes."""
    pool, stores, none = found["switch"], found["stores"], found["recompute"]

    def counted(name: str) -> Interval:
        return mean_interval([run[name] * 3600 / run["duration_s"] for run in pool.runs])

    return Entry(
        nodes,
        len(pool.runs),
        counted("completed"),
        counted("digests"),
        counted("table_writes"),
        counted("table_updates"),
        1e-6 * counted("control_bytes"),
        digests_cpu_s(1.0) * counted("digests"),
        switches * pool.mean("pool_blocks") * ENTRY_BYTES / 1e6,
        pool.cost - stores.cost,
        saved(pool, stores),
        mean_interval(
            [
                (other["prefill_s"] - mine["prefill_s"]) * 3600 / other["duration_s"]
                for mine, other in zip(pool.runs, stores.runs, strict=True)
            ]
        ),
        saved(pool, none),
        1 - ratio(pool, stores, *MEAN),
        1 - ratio(pool, stores, *P99),
    )


def saved(mine: Sample, other: Sample) -> Interval:
    """Seconds of waiting that an hour of steady state saves, seed by seed."""
    return mean_interval(
        [
            (figure(theirs, STEADY) - figure(own, STEADY)) * theirs["completed"] * 3600 / theirs["duration_s"]
            for own, theirs in zip(mine.runs, other.runs, strict=True)
        ]
    )
