"""What managing the pool costs in an hour by the number of nodes, against what it earns."""

from __future__ import annotations

from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from experiments.study.benefit import SECOND_DOLLARS, saved_gpu_an_hour_s
from experiments.study.hours import hour_sample, saved_s
from experiments.study.sample import MEAN, P99, Sample, ratio
from scenario.tables import Control
from simulator.measured import SWITCH_DIGEST_CPU_S

ENTRY_BYTES = 128
"""Of a table entry in the embedded switch (docs/performance.md), and a block has one."""
READ_S = Control().read_entry_s
"""Of the controller, for a hit counter."""
NEEDED = ("recompute", "stores", "switch")
"""Systems whose hours an entry is made of."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger: counts of an hour that was played; with one seed they have no interval."""

    nodes: int
    seeds: int
    requests: Interval
    digests: Interval
    writes: Interval
    """P4Runtime Write requests."""
    updates: Interval
    reads: Interval
    """Hit counters that were read."""
    messages_mb: Interval
    controller_s: Interval
    """CPU of the controllers, as the simulator counts it: digests, and reading counters."""
    reading_s: Interval
    """Of that, for reading counters."""
    switch_s: Interval
    """CPU of the switches' own processors: the measured cost of a digest and its entry, times their count."""
    table_mb: float
    """Entries of all switches, full pools."""
    extra_dollars: float
    saved_s: Interval
    """Of waiting, against the same storage nodes without a pool, the first twelfth as the others."""
    saved_gpu_s: Interval
    against_recompute_s: Interval
    sooner: Interval
    """Share of the mean first token of the same storage nodes, without the first twelfth."""
    tail: Interval
    """The same of p99."""
    whole: Interval
    """The same of the mean of the whole hour."""

    @property
    def saved_dollars(self) -> Interval:
        """Saved waiting at the price of a node's second."""
        return SECOND_DOLLARS * self.saved_s

    @property
    def cpu_s(self) -> float:
        """Return the CPU seconds of controllers and switches."""
        return self.controller_s.mean + self.switch_s.mean

    @property
    def earned_ms(self) -> dict[str, Interval | None]:
        """Waiting saved for one of each that management takes, milliseconds; None where there was none."""
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
    """Return the row of one number of nodes; `found`: the hours of NEEDED."""
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
