"""Figures as tables: rows for CSV files and for the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.intervals import Interval
from experiments.study.atlas import Verdicts
from experiments.study.benefit import benefit
from experiments.study.ledger import Entry
from experiments.study.point import Point
from experiments.study.sample import MEAN, P99, START, STEADY, STEADY_P99, Sample
from experiments.study.space import Gain
from experiments.study.systems import NAMES
from experiments.study.tornado import Bar


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


AFTER_THE_FIRST = ("tpot_s", "between_tokens_s", "end_to_end_s")
"""Times of which the tables have mean and p99, the time to the first token apart."""
COLUMNS = (
    "sweep", "value", "system", "variant", "stores", "shape", "nodes", "requests", "seeds", "load", "reuse",
    "block_tokens", "link_gbit_s", "pool_gb",
    "ttft_mean_s", "ttft_mean_low_s", "ttft_mean_high_s", "ttft_p50_s",
    "ttft_p99_s", "ttft_p99_low_s", "ttft_p99_high_s",
    "start_mean_s", "start_extra_wait_s", "steady_mean_s", "steady_low_s", "steady_high_s", "steady_p99_s",
    "steady_p99_low_s", "steady_p99_high_s", "tpot_mean_s", "tpot_p99_s", "between_tokens_mean_s",
    "between_tokens_p99_s", "end_to_end_mean_s", "end_to_end_p99_s",
    "requests_per_s", "found_share", "from_pool_share",
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
    mean, p99, steady, late = (found.interval(*path) for path in (MEAN, P99, STEADY, STEADY_P99))
    return (
        point.sweep, point.value, point.system, point.variant, setting.stores, setting.shape, setting.nodes,
        round(found.mean("requests")), len(found.runs), setting.load, setting.reuse,
        setting.block_tokens, setting.link_gbit_s, setting.pool_gb,
        mean.mean, mean.low, mean.high, found.mean("ttft_s", "p50"), p99.mean, p99.low, p99.high,
        found.mean(*START), found.start_wait_s.mean, steady.mean, steady.low, steady.high,
        *_parts(late),
        *(found.mean(name, part) for name in AFTER_THE_FIRST for part in ("mean", "p99")),
        found.mean("requests_per_s"), 1 - blocks["recomputed"] / total, blocks["pool"] / total,
        found.mean("prefill_s"), found.mean("saved_prefill_s"), found.mean("storage_egress_bytes") / 1e9,
        found.mean("storage_busy_share"), found.mean("switch_served_bytes") / 1e9,
        found.mean("merged"), found.mean("digests"), found.mean("table_updates"),
        found.mean("control_bytes") / 1e6, found.mean("control_cpu_s"), found.total_cost, found.cost,
    )  # fmt: skip


def map_table(found: Sequence[Verdicts], steady: Sequence[Verdicts]) -> Table:
    """Who is best at each setting of the map."""
    columns = (
        "nodes", "model", "traffic", "reuse", "link_gbit_s", "load", "pool_gb", "seeds", "number", "fastest",
        "nearest_with_pool", "its_dollars_per_hour", "rival", "rival_dollars_per_hour", "lead", "lead_low",
        "lead_high", "p99_lead", "p99_low", "p99_high", "standing", "lead_over_storage_nodes",
        "standing_among_these", "headroom_of_bound", "steady_lead", "steady_low", "steady_high",
        "steady_standing", "steady_lead_over_storage_nodes", "steady_standing_among_these",
    )  # fmt: skip
    rows = []
    for one, later in zip(found, steady, strict=True):
        at = one.setting
        rows.append(
            (at.nodes, at.model, at.shape, at.reuse, at.link_gbit_s, at.load, at.pool_gb, one.seeds,
             one.number, one.fastest,
             one.pool.label, one.pool.sample.cost, one.rival.label, one.rival.sample.cost,
             *_parts(one.lead), *_parts(one.tail),
             one.standing.value, one.central_lead.mean, one.central_standing.value, one.headroom,
             *_parts(later.lead), later.standing.value,
             later.central_lead.mean, later.central_standing.value)
        )  # fmt: skip
    return Table("map", columns, tuple(rows))


def _parts(value: Interval) -> tuple[float, float, float]:
    return value.mean, value.low, value.high


def space_table(found: Sequence[Gain]) -> Table:
    """How much sooner, by pair and part of the space."""
    columns = (
        "system", "against", "part", "settings", "sooner", "low", "high", "sooner_in", "later_in",
        "p99_sooner", "p99_low", "p99_high",
    )  # fmt: skip
    rows = [
        (NAMES[one.what], NAMES[one.without], one.part, one.settings, *_parts(one.gain), one.sooner,
         one.later, *_parts(one.tail))
        for one in found
    ]  # fmt: skip
    return Table("space", columns, tuple(rows))


def ledger_table(entries: Sequence[Entry]) -> Table:
    """Per hour, but the tables."""
    columns = (
        "nodes", "requests", "digests", "digests_low", "digests_high", "writes", "writes_low", "writes_high",
        "table_updates", "updates_low", "updates_high", "messages_mb", "cpu_s", "tables_mb",
        "extra_dollars", "saved_wait_s", "saved_low", "saved_high", "saved_gpu_s", "gpu_low", "gpu_high",
        "saved_dollars", "dollars_low", "dollars_high", "saved_against_recompute_s", "recompute_low",
        "recompute_high", "p99_ratio", "p99_low", "p99_high",
    )  # fmt: skip
    rows = [
        (one.nodes, round(one.requests), *_parts(one.digests), *_parts(one.writes), *_parts(one.updates),
         one.messages_mb, one.cpu_s, one.table_mb, one.extra_dollars, *_parts(one.saved_s),
         *_parts(one.saved_gpu_s), *_parts(one.saved_dollars), *_parts(one.against_recompute_s),
         *_parts(one.tail))
        for one in entries
    ]  # fmt: skip
    return Table("ledger", columns, tuple(rows))


def tornado_table(name: str, made: Sequence[Bar], rival: str) -> Table:
    """Every change, prices included."""
    columns = (
        "change", "net_dollars_per_hour", "low", "high", "sooner", "sooner_low", "sooner_high",
        "p99_sooner", "p99_low", "p99_high",
    )  # fmt: skip
    rows = [
        (bar.change, *_parts(bar.net_dollars), *_parts(bar.faster), *_parts(bar.tail))
        for bar in made
        if bar.rival == rival
    ]
    return Table(name, columns, tuple(rows))


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
