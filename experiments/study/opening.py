"""What the report says first: whether any switch is the best purchase, and the bound that says why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.intervals import Interval
from experiments.study.hours import HOUR, hour_sample
from experiments.study.rivals import Done, fan_ins, led, purchases
from experiments.study.sample import MEAN, P50, P99, STEADY, Sample, ratio
from experiments.study.systems import BOUND, NAMES
from experiments.study.table import Table

STORES = 2


def opening(done: Done) -> list[str]:
    """Sentences for who reads no further; none where nothing was bought at equal cost."""
    where = [nodes for nodes in fan_ins(done) if any(one.pooled for one in purchases(done, nodes))]
    if not where:
        return []
    return [_all_leads(done, where), *_stores(done, where), *_hours(done)]


def _all_leads(done: Done, where: Sequence[int]) -> str:
    """How many there are, with the cold start and in the second half, and the bound that says why so few."""
    out_of = sum(one.pooled for nodes in where for one in purchases(done, nodes))
    names = _list([str(nodes) for nodes in where])
    whole, steady = _leads(done, where, MEAN), _leads(done, where, STEADY)
    text = (
        f"Of {out_of} purchases with a pool or merging in the switch, with {names} nodes, "
        f"{_are(len(whole))} surely sooner to the first token than everything that costs no more, "
        f"in the second half {_are(len(steady))}{_bound(done, where)}."
    )
    parts = [
        f" {when}: {'; '.join(found)}."
        for when, found in (("With the cold start", whole), ("In the second half", steady))
        if found
    ]
    return text + "".join(parts)


def _are(count: int) -> str:
    return "none is" if not count else f"{count} is" if count == 1 else f"{count} are"


def _leads(done: Done, where: Sequence[int], path: tuple[str, str]) -> list[str]:
    """The purchases with a pool or merging that surely lead all that costs no more, and by how much."""
    found = []
    for nodes in where:
        bought = purchases(done, nodes)
        best = [(one, rival) for one in bought if one.pooled and (rival := led(one, bought, path))]
        found += [
            f"{pool.label} with {nodes} nodes by {1 - ratio(pool.sample, rival.sample, *path):.2%}"
            f" (p99 {1 - ratio(pool.sample, rival.sample, path[0], 'p99'):+.2%}; {pool.sample.cost:.2f} $/h)"
            for pool, rival in best
        ]
    return found


def _bound(done: Done, where: Sequence[int]) -> str:
    """How much any switch could gain where nodes lend one another their DRAM."""
    found = _changes(done, where, BOUND, "lent")
    if not found:
        return ""
    return (
        f": {NAMES['lent']}, costs nothing, and the bound on all switches that merge or keep blocks in front "
        f"of it leads it by {_widest(found, MEAN)}; in the second half by {_widest(found, STEADY)}; p99 by "
        f"{_widest(found, P99)}"
    )


def _stores(done: Done, where: Sequence[int]) -> list[str]:
    """What a pool is worth where blocks have to lie on two storage nodes."""
    found = _changes(done, where, "switch", "stores")
    if not found:
        return []
    return [
        f"Where blocks have to lie on {STORES} storage nodes, a pool before these is sooner by "
        f"{_widest(found, MEAN)}; in the second half by {_widest(found, STEADY)}; p99 by "
        f"{_widest(found, P99)}."
    ]


def _hours(done: Done) -> list[str]:
    """Steady state proper: the other runs are of half a minute or so."""
    hours = _of_hours(done)
    told = [
        f"{what} is sooner by {_widest(found, MEAN)} (p99 {_widest(found, P99)})"
        for what, one, other in (
            (f"the bound in front of {NAMES['lent']}", BOUND, "lent"),
            (f"{NAMES['answered_pool']}, against {NAMES['lent']}", "answered_pool", "lent"),
            (f"a pool before {STORES} storage nodes", "switch", "stores"),
        )
        if (found := _changed(hours, one, other))
    ]
    if not told:
        return []
    return [
        f"In an hour, its first twelfth left out, {'; '.join(told)}. The other runs last half a minute or so."
    ]


def _of_hours(done: Done) -> dict[int, dict[str, Sample]]:
    """By number of nodes and system, without the first twelfth."""
    found: dict[int, dict[str, Sample]] = {}
    for point, sample in done:
        if point.sweep == HOUR and point.setting.stores == STORES:
            found.setdefault(point.value, {})[point.system] = hour_sample(sample)
    return found


def opening_table(done: Done) -> Table:
    """What the sentences above sum up, a column for each number of nodes: each share sooner, with its
    interval."""
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


Changes = dict[int, dict[tuple[str, str], Interval]]
"""By number of nodes and figure, how much sooner."""


def _changes(done: Done, where: Sequence[int], one: str, other: str) -> Changes:
    return _changed({nodes: _by_system(done, nodes) for nodes in where}, one, other)


def _changed(by_nodes: Mapping[int, Mapping[str, Sample]], one: str, other: str) -> Changes:
    """Of one system over another."""
    return {
        nodes: {path: 1 - ratio(mine[one], mine[other], *path) for path in (MEAN, STEADY, P50, P99)}
        for nodes, mine in by_nodes.items()
        if one in mine and other in mine
    }


def _widest(found: Changes, path: tuple[str, str]) -> str:
    """The least and the most of several, each with the number of nodes; one alone by itself."""
    order = sorted(found, key=lambda nodes: found[nodes][path].mean)
    ends = [f"{found[nodes][path]:+.2%} with {nodes} nodes" for nodes in dict.fromkeys((order[0], order[-1]))]
    return " to ".join(ends)


def _by_system(done: Done, nodes: int) -> dict[str, Sample]:
    """Of the purchases those that have one number of storage nodes, and the bound."""
    return {
        point.system: sample
        for point, sample in done
        if point.sweep == "rivals" and point.value == nodes and not point.variant
        and (point.system not in ("stores", "switch") or point.setting.stores == STORES)
    }  # fmt: skip


def _list(parts: Sequence[str]) -> str:
    """As a sentence has it."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
