"""Figures as tables: rows for CSV files and for the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.study.benefit import benefit
from experiments.study.plan import Point
from experiments.study.sample import START, STEADY, STEADY_P99, Sample
from experiments.study.search import Edge
from experiments.study.systems import NAMES


@dataclass(frozen=True, slots=True)
class Table:
    """A named table; `name` is also its file's."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def csv(self) -> str:
        """As a CSV file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


COLUMNS = (
    "sweep", "value", "system", "stores", "shape", "nodes", "requests", "seeds", "load", "reuse",
    "block_tokens", "link_gbit_s", "pool_gb",
    "ttft_mean_s", "ttft_mean_low_s", "ttft_mean_high_s", "ttft_p50_s",
    "ttft_p99_s", "ttft_p99_low_s", "ttft_p99_high_s",
    "start_mean_s", "start_extra_wait_s", "steady_mean_s", "steady_low_s", "steady_high_s", "steady_p99_s",
    "tpot_mean_s", "requests_per_s", "found_share", "from_pool_share",
    "prefill_gpu_s", "saved_prefill_gpu_s", "storage_egress_gb", "storage_busy_share", "switch_served_gb",
    "merged_fragments", "digests", "table_updates", "control_mb", "control_cpu_s",
    "dollars_per_hour", "cache_dollars_per_hour",
)  # fmt: skip


def points_table(done: Sequence[tuple[Point, Sample]]) -> Table:
    """Every point of the sweeps: means over the seeds, low and high of their 95 % intervals."""
    return Table("points", COLUMNS, tuple(_row(*pair) for pair in done))


def _row(point: Point, found: Sample) -> tuple[Any, ...]:
    setting = point.setting
    blocks = {name: found.mean("blocks", name) for name in found.runs[0]["blocks"]}
    total = max(1.0, sum(blocks.values()))
    mean, p99, steady = (
        found.interval("ttft_s", "mean"),
        found.interval("ttft_s", "p99"),
        found.interval(*STEADY),
    )
    return (
        point.sweep, point.value, point.system, setting.stores, setting.shape, setting.nodes,
        round(found.mean("requests")), len(found.runs), setting.load, setting.reuse,
        setting.block_tokens, setting.link_gbit_s, setting.pool_gb,
        mean.mean, mean.low, mean.high, found.mean("ttft_s", "p50"), p99.mean, p99.low, p99.high,
        found.mean(*START), found.start_wait_s.mean, steady.mean, steady.low, steady.high,
        found.mean(*STEADY_P99), found.mean("tpot_s", "mean"),
        found.mean("requests_per_s"), 1 - blocks["recomputed"] / total, blocks["pool"] / total,
        found.mean("prefill_s"), found.mean("saved_prefill_s"), found.mean("storage_egress_bytes") / 1e9,
        found.mean("storage_busy_share"), found.mean("switch_served_bytes") / 1e9,
        found.mean("merged"), found.mean("digests"), found.mean("table_updates"),
        found.mean("control_bytes") / 1e6, found.mean("control_cpu_s"), found.total_cost, found.cost,
    )  # fmt: skip


def edges_table(edges: Sequence[Edge]) -> Table:
    """The break-even surface."""
    columns = (
        "nodes", "reuse", "against", "pays_from_gb", "pays_to_gb", "best_gb", "net_dollars_per_hour_at_best",
        "net_low", "net_high", "dollars_per_saved_ttft_s_at_best", "ttft_ratio_at_best",
    )  # fmt: skip
    rows = []
    for edge in edges:
        best = edge.best
        earned: tuple[float | None, ...] = (None,) * 5
        if best:
            net = best.net_dollars
            earned = (net.mean, net.low, net.high, best.dollars_per_saved_s, best.ttft_ratio.mean)
        against = "storage nodes, no pool" if edge.against == "stores" else "best of the three baselines"
        rows.append(
            (edge.setting.nodes, edge.setting.reuse, against, edge.from_gb, edge.to_gb, edge.best_gb, *earned)
        )
    return Table("break_even", columns, tuple(rows))


def shares_table(done: Sequence[tuple[Point, Sample]]) -> Table:
    """Each system on each kind of traffic, against storage nodes without a pool."""
    of = {(point.value, point.system): found for point, found in done if point.sweep == "shape"}
    rows = []
    for (shape, name), found in of.items():
        gain = benefit(found, of[shape, "stores"])
        mean, p99 = found.interval("ttft_s", "mean"), found.interval("ttft_s", "p99")
        net = gain.net_dollars
        rows.append(
            (shape, NAMES[name], mean.mean, mean.low, mean.high, p99.mean, p99.low, p99.high,
             gain.saved_gpu_s.mean, gain.extra_dollars, net.mean, net.low, net.high)
        )  # fmt: skip
    columns = (
        "traffic", "system", "ttft_mean_s", "mean_low", "mean_high", "ttft_p99_s", "p99_low", "p99_high",
        "saved_gpu_s_per_hour", "extra_dollars_per_hour", "net_dollars_per_hour_steady", "net_low",
        "net_high",
    )  # fmt: skip
    return Table("systems", columns, tuple(rows))
