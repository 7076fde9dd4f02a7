"""Figures as tables: rows for CSV files and for the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.study.benefit import benefit
from experiments.study.plan import Point
from experiments.study.results import Figures
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
    "sweep", "value", "system", "shape", "nodes", "load", "reuse", "block_tokens", "link_gbit_s", "pool_gb",
    "ttft_mean_s", "ttft_p50_s", "ttft_p99_s", "tpot_mean_s", "requests_per_s", "found_share",
    "from_pool_share",
    "prefill_gpu_s", "saved_prefill_gpu_s", "storage_egress_gb", "storage_busy_share", "switch_served_gb",
    "merged_fragments", "digests", "table_updates", "control_mb", "control_cpu_s",
    "dollars_per_hour", "cache_dollars_per_hour", "dollars_per_saved_gpu_s",
)  # fmt: skip


def points_table(points: Sequence[Point], figures: Sequence[Figures]) -> Table:
    """Every simulation of the sweeps."""
    return Table("points", COLUMNS, tuple(_row(*pair) for pair in zip(points, figures, strict=True)))


def _row(point: Point, found: Figures) -> tuple[Any, ...]:
    setting, blocks = point.setting, found["blocks"]
    total = max(1, sum(blocks.values()))
    return (
        point.sweep, point.value, point.system, setting.shape, setting.nodes, setting.load, setting.reuse,
        setting.block_tokens, setting.link_gbit_s, setting.pool_gb,
        found["ttft_s"]["mean"], found["ttft_s"]["p50"], found["ttft_s"]["p99"], found["tpot_s"]["mean"],
        found["requests_per_s"], 1 - blocks["recomputed"] / total, blocks["pool"] / total,
        found["prefill_s"], found["saved_prefill_s"], found["storage_egress_bytes"] / 1e9,
        found["storage_busy_share"], found["switch_served_bytes"] / 1e9,
        found["merged"], found["digests"], found["table_updates"], found["control_bytes"] / 1e6,
        found["control_cpu_s"], found["dollars_per_hour"], found["cache_dollars_per_hour"],
        found["dollars_per_saved_s"],
    )  # fmt: skip


def edges_table(edges: Sequence[Edge]) -> Table:
    """The break-even surface."""
    columns = (
        "nodes", "reuse", "against", "pays_from_gb", "pays_to_gb", "best_gb", "net_dollars_per_hour_at_best",
        "dollars_per_saved_ttft_s_at_best", "ttft_ratio_at_best",
    )  # fmt: skip
    rows = []
    for edge in edges:
        best = edge.best
        earned = (best.net_dollars, best.dollars_per_saved_s, best.ttft_ratio) if best else (None, None, None)
        against = "storage nodes, no pool" if edge.against == "stores" else "best of the three baselines"
        rows.append(
            (edge.setting.nodes, edge.setting.reuse, against, edge.from_gb, edge.to_gb, edge.best_gb, *earned)
        )
    return Table("break_even", columns, tuple(rows))


def shares_table(points: Sequence[Point], figures: Sequence[Figures]) -> Table:
    """Each system on each kind of traffic, against storage nodes without a pool."""
    of = {
        (point.value, point.system): found
        for point, found in zip(points, figures, strict=True)
        if point.sweep == "shape"
    }
    rows = []
    for (shape, name), found in of.items():
        gain = benefit(found, of[shape, "stores"])
        rows.append(
            (
                shape,
                NAMES[name],
                found["ttft_s"]["mean"],
                found["ttft_s"]["p99"],
                gain.saved_gpu_s,
                gain.extra_dollars,
                gain.net_dollars,
            )
        )
    columns = (
        "traffic", "system", "ttft_mean_s", "ttft_p99_s", "saved_gpu_s_per_hour", "extra_dollars_per_hour",
        "net_dollars_per_hour",
    )  # fmt: skip
    return Table("systems", columns, tuple(rows))
