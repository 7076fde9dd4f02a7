"""The table that the report begins with: how much sooner a pool is than what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commands.intervals import Interval
from experiments.study.hours import HOUR, hour_sample
from experiments.study.rivals import Done, fan_ins, purchases
from experiments.study.sample import MEAN, P50, P99, STEADY, Sample, ratio
from experiments.study.systems import BOUND
from experiments.study.table import Table

STORES = 2
Changes = dict[int, dict[tuple[str, str], Interval]]
"""Shares by which a system is sooner, by number of nodes and figure."""


def first_table(done: Done) -> Table:
    """Return shares by which the first token is sooner, with intervals; a column for each number of nodes."""
    where, hours = fan_ins(done), _of_hours(done)
    rows: list[tuple[object, ...]] = []
    for name, one, other in (
        ("lent DRAM over recomputing", "lent", "recompute"),
        ("bound over lent DRAM", BOUND, "lent"),
        ("pool over 2 storage nodes", "switch", "stores"),
    ):
        short, hour = _changes(done, where, one, other), _changed(hours, one, other)
        for what, found, path in (
            ("", short, MEAN),
            ("second half", short, STEADY),
            ("an hour", hour, MEAN),
            ("p50", short, P50),
            ("p99", short, P99),
        ):
            cells = [f"{found[nodes][path]:+.2%}" if nodes in found else "" for nodes in where]
            if any(cells):
                rows.append((f"{name}, {what}" if what else name, *cells))
    seeds = [max(len(one.sample.runs) for one in purchases(done, nodes)) for nodes in where]
    costs = [_by_system(done, nodes) for nodes in where]
    for name, system in (("2 storage nodes, $/h", "stores"), ("2 storage nodes and pool, $/h", "switch")):
        rows.append((name, *(f"{mine[system].cost:.2f}" if system in mine else "" for mine in costs)))
    rows.append(("seeds", *seeds))
    return Table("first", ("sooner by", *(f"{nodes} nodes" for nodes in where)), tuple(rows) if where else ())


def _of_hours(done: Done) -> dict[int, dict[str, Sample]]:
    """Return the samples of an hour with STORES storage nodes, by number of nodes and system,
    without its cold start."""
    found: dict[int, dict[str, Sample]] = {}
    for point, sample in done:
        if point.sweep == HOUR and point.setting.stores == STORES:
            found.setdefault(point.value, {})[point.system] = hour_sample(sample)
    return found


def _changes(done: Done, where: Sequence[int], one: str, other: str) -> Changes:
    return _changed({nodes: _by_system(done, nodes) for nodes in where}, one, other)


def _changed(by_nodes: Mapping[int, Mapping[str, Sample]], one: str, other: str) -> Changes:
    return {
        nodes: {path: 1 - ratio(mine[one], mine[other], *path) for path in (MEAN, STEADY, P50, P99)}
        for nodes, mine in by_nodes.items()
        if one in mine and other in mine
    }


def _by_system(done: Done, nodes: int) -> dict[str, Sample]:
    """Return the purchases with STORES storage nodes, or without any, and the bound, by system."""
    return {
        point.system: sample
        for point, sample in done
        if point.sweep == "rivals" and point.value == nodes and not point.variant
        and (point.system not in ("stores", "switch") or point.setting.stores == STORES)
    }  # fmt: skip
