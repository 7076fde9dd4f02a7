"""Tables of figures, for CSV files and for the report; a figure that differs by seed has its interval."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from commands.intervals import Interval, mean_interval
from experiments.study.benefit import benefit
from experiments.study.budget import Score
from experiments.study.ledger import Entry
from experiments.study.point import Point
from experiments.study.references import References, over
from experiments.study.sample import MEAN, P50, P99, START, STEADY, STEADY_P99, TTFT, Sample, ratio
from experiments.study.setting_map import Verdicts
from experiments.study.space import Gain
from experiments.study.systems import NAMES
from experiments.study.tornado import Bar


@dataclass(frozen=True, slots=True)
class Table:
    """A named table; `name` is also its file's. An interval is one cell."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def flat(self) -> Table:
        """Return the table with numbers only.

        An interval becomes three columns: its mean by its own name, `_low` and `_high`, which are
        None with one run.
        """
        wide = [any(isinstance(row[at], Interval) for row in self.rows) for at in range(len(self.columns))]
        columns = tuple(
            part
            for name, three in zip(self.columns, wide, strict=True)
            for part in ((name, f"{name}_low", f"{name}_high") if three else (name,))
        )
        rows = tuple(
            tuple(
                part
                for cell, three in zip(row, wide, strict=True)
                for part in (parts(cell) if three else (cell,))
            )
            for row in self.rows
        )
        return Table(self.name, columns, rows)

    def csv(self) -> str:
        """Return the table as a CSV file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        flat = self.flat()
        writer.writerow(flat.columns)
        writer.writerows(flat.rows)
        return text.getvalue()


def parts(cell: Interval | None) -> tuple[float | None, float | None, float | None]:
    """Return mean, low and high; bounds are None with one run."""
    if cell is None:
        return None, None, None
    known = isfinite(cell.half)
    return cell.mean, cell.low if known else None, cell.high if known else None


TIME_COLUMNS = {
    "ttft": TTFT,
    "steady": STEADY[0],
    "start": START[0],
    "tpot": "tpot_s",
    "between_tokens": "between_tokens_s",
    "end_to_end": "end_to_end_s",
}
"""Names of times in results, by the names in columns."""
STATISTICS = ("mean", "p50", "p99")
"""Statistics of each time."""
COUNTS = (
    "requests_per_s", "prefill_s", "saved_prefill_s", "storage_busy_share", "merged", "digests",
    "table_updates", "control_cpu_s",
)  # fmt: skip
BYTES = {"storage_egress_bytes": 1e9, "switch_served_bytes": 1e9, "control_bytes": 1e6}
COLUMNS = (
    "sweep", "value", "system", "variant", "stores", "shape", "nodes", "requests", "seeds", "load", "reuse",
    "block_tokens", "link_gbit_s", "pool_gb",
    *(f"{name}_{part}_s" for name in TIME_COLUMNS for part in STATISTICS),
    "over_recomputing", "p50_over_recomputing", "p99_over_recomputing",
    "steady_over_recomputing", "steady_p99_over_recomputing",
    "start_extra_wait_s", "found_share", "from_pool_share",
    *COUNTS, "storage_egress_gb", "switch_served_gb", "control_mb",
    "dollars_per_hour", "cache_dollars_per_hour",
)  # fmt: skip


def points_table(done: Sequence[tuple[Point, Sample]], name: str = "points") -> Table:
    """Return the table of all points; ratios to recomputing are taken seed by seed."""
    references = References(done)
    return Table(name, COLUMNS, tuple(_row(*pair, references) for pair in done))


def _row(point: Point, found: Sample, references: References) -> tuple[Any, ...]:
    setting, nothing = point.setting, references.recomputing(point)
    return (
        point.sweep, point.value, point.system, point.variant, setting.stores, setting.shape, setting.nodes,
        round(found.mean("requests")), len(found.runs), setting.load, setting.reuse,
        setting.block_tokens, setting.link_gbit_s, setting.pool_gb,
        *(found.interval(time, part) for time in TIME_COLUMNS.values() for part in STATISTICS),
        *(over(found, nothing, *path) for path in (MEAN, P50, P99, STEADY, STEADY_P99)),
        found.start_wait_s,
        mean_interval([1 - share for share in _shares(found, "recomputed")]),
        mean_interval(list(_shares(found, "pool"))),
        *(found.interval(count) for count in COUNTS),
        *(1 / unit * found.interval(count) for count, unit in BYTES.items()), found.total_cost, found.cost,
    )  # fmt: skip


def _shares(found: Sample, kind: str) -> Iterator[float]:
    """Yield the share of all blocks that came from `kind`, by seed."""
    for run in found.runs:
        yield run["blocks"][kind] / max(1.0, sum(run["blocks"].values()))


def beside_table(name: str, mine: Mapping[str, Sample], reference: str, unit: str = "seeds") -> Table:
    """Return a table of systems and of their ratios to the system `reference`, by pairs of `unit`."""
    columns = (
        "system", unit, "ttft_mean_s", "ttft_p50_s", "ttft_p99_s", "ratio", "p50_ratio", "p99_ratio",
        "cache_dollars_per_hour",
    )  # fmt: skip
    rows = [
        (label, len(one.runs), *(one.interval(*path) for path in (MEAN, P50, P99)),
         *(over(one, mine.get(reference), *path) for path in (MEAN, P50, P99)), one.cost)
        for label, one in mine.items()
    ]  # fmt: skip
    return Table(name, columns, tuple(rows))


def waits_table(
    name: str, mine: Mapping[str, Sample], warm: Mapping[str, str], waits_s: Mapping[str, Interval]
) -> Table:
    """Return a table of how much longer each system waits than the warm one; `warm` is
    the warm one's label."""
    columns = (
        "system", "seeds", "waits_longer_s", "ttft_mean_s", "ttft_p50_s", "ttft_p99_s", "ratio", "p50_ratio",
        "p99_ratio",
    )  # fmt: skip
    rows = [
        (label, len(mine[label].runs), wait_s, *(mine[label].interval(*path) for path in (MEAN, P50, P99)),
         *(ratio(mine[label], mine[warm[label]], *path) for path in (MEAN, P50, P99)))
        for label, wait_s in waits_s.items()
    ]  # fmt: skip
    return Table(name, columns, tuple(rows))


def map_table(found: Sequence[Verdicts], steady: Sequence[Verdicts]) -> Table:
    """Return the table of who is best at each setting of the map."""
    columns = (
        "nodes", "model", "traffic", "reuse", "link_gbit_s", "load", "pool_gb", "seeds", "number", "fastest",
        "nearest_with_pool", "pool_dollars_per_hour", "rival", "rival_dollars_per_hour", "lead", "p99_lead",
        "verdict", "lead_over_storage_nodes", "p99_lead_over_storage_nodes", "verdict_over_storage_nodes",
        "headroom_of_bound", "p99_headroom", "steady_lead", "steady_p99_lead", "steady_verdict",
        "steady_lead_over_storage_nodes", "steady_p99_lead_over_storage_nodes",
        "steady_verdict_over_storage_nodes",
    )  # fmt: skip
    rows = []
    for one, later in zip(found, steady, strict=True):
        at = one.setting
        rows.append(
            (at.nodes, at.model, at.shape, at.reuse, at.link_gbit_s, at.load, at.pool_gb, one.seeds,
             one.number, one.fastest,
             one.pool.label, one.pool.sample.cost, one.rival.label, one.rival.sample.cost,
             one.lead, one.tail, one.verdict.value,
             one.central_lead, one.central_tail, one.central_verdict.value, one.headroom, one.headroom_tail,
             later.lead, later.tail, later.verdict.value,
             later.central_lead, later.central_tail, later.central_verdict.value)
        )  # fmt: skip
    return Table("map", columns, tuple(rows))


def budget_table(name: str, found: Sequence[Score]) -> Table:
    """Return the table of who is best within each budget; an infinite budget is None."""
    columns = (
        "budget_dollars_per_hour", "purchase", "settings",
        "fastest_in", "significantly_fastest_in", "unbeaten_in",
        "steady_fastest_in", "steady_significantly_fastest_in", "steady_unbeaten_in", "sooner", "p99_sooner",
    )  # fmt: skip
    rows = [
        (one.budget if isfinite(one.budget) else None, one.purchase, one.places,
         *one.whole, *one.steady,
         one.gain, one.tail)
        for one in found
    ]  # fmt: skip
    return Table(name, columns, tuple(rows))


def space_table(found: Sequence[Gain]) -> Table:
    """Return the table of gains, by pair and part of the space."""
    columns = ("system", "against", "part", "settings", "sooner", "sooner_in", "later_in", "p99_sooner")
    rows = [
        (NAMES[one.what], NAMES[one.without], one.part, one.settings, one.gain, one.sooner, one.later,
         one.tail)
        for one in found
    ]  # fmt: skip
    return Table("space", columns, tuple(rows))


def ledger_table(entries: Sequence[Entry]) -> Table:
    """Return the ledger's table: figures of an hour, and milliseconds of waiting saved for
    each unit of management."""
    columns = (
        "nodes", "seeds", "requests", "digests", "writes", "table_updates", "counters_read", "messages_mb",
        "controller_cpu_s", "of_which_reading_s", "switch_cpu_s", "tables_mb", "extra_dollars",
        "saved_wait_s", "saved_gpu_s", "saved_dollars", "saved_against_recompute_s", "sooner", "p99_sooner",
        "sooner_from_start",
        *(f"saved_ms_a_{name}" for name in entries[0].saved_ms_per),
    )  # fmt: skip
    rows = [
        (one.nodes, one.seeds, one.requests, one.digests, one.writes, one.updates, one.reads,
         one.messages_mb, one.controller_s, one.reading_s, one.switch_s, one.table_mb, one.extra_dollars,
         one.saved_s, one.saved_gpu_s, one.saved_dollars, one.against_recompute_s, one.sooner, one.tail,
         one.whole, *one.saved_ms_per.values())
        for one in entries
    ]  # fmt: skip
    return Table("ledger", columns, tuple(rows))


def tornado_table(name: str, all_bars: Sequence[Bar], pair: str) -> Table:
    """Return the table of all changes, prices included, in the second half."""
    columns = (
        "change", "seeds", "steady_net_dollars_per_hour", "steady_sooner", "steady_p99_sooner",
    )  # fmt: skip
    rows = [
        (bar.change, bar.seeds, bar.net_dollars, bar.faster, bar.tail) for bar in all_bars if bar.pair == pair
    ]
    return Table(name, columns, tuple(rows))


def shares_table(done: Sequence[tuple[Point, Sample]]) -> Table:
    """Return the table of all systems on each kind of traffic, against storage nodes without a pool."""
    of = {(point.value, point.system): found for point, found in done if point.sweep == "shape"}
    rows = []
    for (shape, name), found in of.items():
        stores = of[shape, "stores"]
        gain = benefit(found, stores)
        rows.append(
            (shape, NAMES[name], len(found.runs), *(found.interval(*path) for path in (MEAN, P50, P99)),
             *(over(found, stores, *path) for path in (MEAN, P50, P99)),
             gain.saved_gpu_s, gain.extra_dollars, gain.net_dollars)
        )  # fmt: skip
    columns = (
        "traffic", "system", "seeds", "ttft_mean_s", "ttft_p50_s", "ttft_p99_s", "over_storage_nodes",
        "p50_over_storage_nodes", "p99_over_storage_nodes", "saved_gpu_s_per_hour", "extra_dollars_per_hour",
        "net_dollars_per_hour_steady",
    )  # fmt: skip
    return Table("systems", columns, tuple(rows))
