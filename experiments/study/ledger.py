"""The ledger: what managing the pool costs in an hour, and what it saves, by number of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from experiments.study.benefit import SECOND_DOLLARS, saved_gpu_an_hour_s
from experiments.study.hours import hour_sample, saved_s
from experiments.study.sample import MEAN, P99, Sample, ratio
from scenario.tables import Control
from simulator.measured import SWITCH_DIGEST_CPU_S

ENTRY_BYTES = 128
"""Bytes of a table entry in the embedded switch (docs/performance.md); a block has one entry."""
READ_S = Control().read_entry_s
"""CPU seconds of the controller to read a hit counter."""
NEEDED = ("recompute", "stores", "switch")
"""Systems whose hours are needed for an entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger: counts of a simulated hour; with one seed they have no interval."""

    nodes: int
    seeds: int
    requests: Interval
    digests: Interval
    writes: Interval
    """Number of P4Runtime Write requests."""
    updates: Interval
    reads: Interval
    """Number of hit counters that were read."""
    messages_mb: Interval
    controller_s: Interval
    """CPU seconds of the controllers for digests and for reading counters, as the simulator counts them."""
    reading_s: Interval
    """CPU seconds of the controllers for reading counters."""
    switch_s: Interval
    """CPU seconds of the switches' own processors: the measured cost of a digest and its
    entry, times their count."""
    table_mb: float
    """Megabytes of the entries of all switches with full pools."""
    extra_dollars: float
    saved_s: Interval
    """Seconds of waiting saved against the same storage nodes without a pool, as if no twelfth were cold."""
    saved_gpu_s: Interval
    against_recompute_s: Interval
    sooner: Interval
    """Share by which the mean first token is sooner than the same storage nodes',
    without the first twelfth."""
    tail: Interval
    """Share by which p99 is sooner."""
    whole: Interval
    """Share by which the mean of the whole hour is sooner."""

    @property
    def saved_dollars(self) -> Interval:
        """Return the saved waiting in dollars, at the price of a node's second."""
        return SECOND_DOLLARS * self.saved_s

    @property
    def cpu_s(self) -> float:
        """Return the CPU seconds of controllers and switches."""
        return self.controller_s.mean + self.switch_s.mean

    @property
    def saved_ms_per(self) -> dict[str, Interval | None]:
        """Return the milliseconds of waiting saved for each unit of management, by unit; None
        if there was none."""
        spent = {
            "digest": self.digests.mean,
            "write": self.writes.mean,
            "update": self.updates.mean,
            "counter_read": self.reads.mean,
            "message_mb": self.messages_mb.mean,
            "cpu_s": self.cpu_s,
            "table_mb": self.table_mb,
        }
        return {name: 1e3 / count * self.saved_s if count else None for name, count in spent.items()}


def entry(nodes: int, switches: int, found: dict[str, Sample]) -> Entry:
    """Return the row for one number of nodes; `found` has the hours of NEEDED."""
    pool, stores, none = found["switch"], found["stores"], found["recompute"]
    mine, theirs = hour_sample(pool), hour_sample(stores)

    def counted(name: str) -> Interval:
        return mean_interval([run[name] * 3600 / run["duration_s"] for run in pool.runs])

    return Entry(
        nodes=nodes,
        seeds=len(pool.runs),
        requests=counted("completed"),
        digests=counted("digests"),
        writes=counted("table_writes"),
        updates=counted("table_updates"),
        reads=counted("entries_read"),
        messages_mb=1e-6 * counted("control_bytes"),
        controller_s=counted("control_cpu_s"),
        reading_s=READ_S * counted("entries_read"),
        switch_s=SWITCH_DIGEST_CPU_S * counted("digests"),
        table_mb=switches * pool.mean("pool_blocks") * ENTRY_BYTES / 1e6,
        extra_dollars=pool.cost - stores.cost,
        saved_s=saved_s(pool, stores),
        saved_gpu_s=mean_interval(
            [saved_gpu_an_hour_s(own, other) for own, other in zip(pool.runs, stores.runs, strict=True)]
        ),
        against_recompute_s=saved_s(pool, none),
        sooner=1 - ratio(mine, theirs, *MEAN),
        tail=1 - ratio(mine, theirs, *P99),
        whole=1 - ratio(pool, stores, *MEAN),
    )
