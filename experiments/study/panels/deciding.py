"""Panels of the map of settings, of what the decision depends on, and of what management costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from commands.intervals import Interval
from experiments.study import figures
from experiments.study.hours import HOUR
from experiments.study.ledger import NEEDED, Entry, entry
from experiments.study.panels.panel import Found, Panel, part, places
from experiments.study.point import Point
from experiments.study.rivals import Done
from experiments.study.sample import Sample
from experiments.study.setting_map import Verdict
from experiments.study.space import gains, settings_of
from experiments.study.systems import NAMES
from experiments.study.table import ledger_table, map_table, space_table, tornado_table
from experiments.study.tornado import BASE, NODES, Bar, bars, swings


@dataclass(frozen=True, slots=True)
class _Leads:
    """Leads in percent by number of nodes, grouped by how certain they are."""

    groups: dict[str, list[tuple[float, Interval, str]]] = field(
        default_factory=lambda: {kind.value: [] for kind in Verdict}
    )

    def add(self, verdict: Verdict, nodes: int, lead: Interval, text: str) -> None:
        self.groups[verdict.value].append((nodes, 100 * lead, text))


def settings(found: Found) -> Panel:
    """Return the panel that shows which purchase is best in which setting."""
    overall, central, tails = _Leads(), _Leads(), _Leads()
    for one in found.verdicts:
        at = one.setting
        who = f"{at.model}, {at.shape}: {one.pool.label} against {one.rival.label}"
        overall.add(one.verdict, at.nodes, one.lead, who)
        where = f"{at.nodes} nodes, {at.link_gbit_s:.0f} Gbit/s, {at.shape}"
        central.add(one.central_verdict, at.nodes, one.central_lead, where)
        tails.add(one.verdict, at.nodes, one.tail, who)
    return Panel(
        "Who is best where",
        [
            figures.scatter("nodes", "lead over the best<br>at that cost, %", overall.groups, zero=True),
            figures.scatter(
                "nodes",
                "the same against storage nodes<br>and recomputing alone, %",
                central.groups,
                zero=True,
            ),
            figures.scatter("nodes", "lead in p99 over the best<br>at that cost, %", tails.groups, zero=True),
        ],
        map_table(found.verdicts, found.steady),
        f"{len(found.verdicts)} settings, {found.around} of them drawn where a pool came nearest. Of several "
        "pools the one that came nearest is judged, which favours it.",
    )


def space(done: Done) -> Panel:
    """Return the panel of what a switch in front gains in settings simulated once each."""
    found = gains(settings_of(done))
    by_part: dict[str, dict[str, Interval]] = {}
    tails: dict[str, dict[str, Interval]] = {}
    for one in found:
        pair = f"{NAMES[one.what]} over {NAMES[one.without]}"
        by_part.setdefault(pair, {})[one.part] = one.gain
        tails.setdefault(pair, {})[one.part] = one.tail
    return Panel(
        "Over the whole space, settings once each",
        [
            figures.dots("mean first token sooner by this share", by_part),
            figures.dots("p99 of the first token sooner by this share", tails),
        ],
        space_table(found),
        "Most of so short a run is its cold start. Costs are not compared. Intervals are over settings.",
    )


def _tornado_bars(done: Done) -> list[Bar]:
    """Return all changes at the decision point, prices included."""
    found: dict[str, dict[str, tuple[Point, Sample]]] = {}
    for point, sample in part(done, "tornado"):
        found.setdefault(point.value, {})[point.system] = (point, sample)
    return bars(found)


def tornado(done: Done) -> list[Panel]:
    """Return one panel for each pool and rival."""
    all_bars = _tornado_bars(done)
    found = []
    for number, pair in enumerate(dict.fromkeys(bar.pair for bar in all_bars), 1):
        mine = {bar.change: bar for bar in all_bars if bar.pair == pair}
        means, tails = (
            {name: value for name, value in leads.items() if value != leads[BASE] or name == BASE}
            for leads in (
                {name: bar.faster for name, bar in mine.items()},
                {name: bar.tail for name, bar in mine.items()},
            )
        )
        rows = [
            (name, low.net_dollars, high.net_dollars)
            for name, low, high in swings(all_bars, pair)
            if low.net_dollars != high.net_dollars
        ]
        found.append(
            Panel(
                f"What the decision depends on: {NODES} nodes, {pair}",
                [
                    figures.swings(
                        "$/h that the pool is ahead in the second half", rows, (BASE, mine[BASE].net_dollars)
                    ),
                    figures.dots(
                        "mean and p99 of the first token in the second half sooner by this share",
                        {"mean": means, "p99": tails},
                    ),
                ],
                tornado_table(f"tornado_{number}", all_bars, pair),
                "A second of waiting is priced at a second of a node, which is a convention.",
            )
        )
    return found


def _ledger_entries(done: Done) -> list[Entry]:
    """Return the entries by number of nodes, of hours with the number of storage nodes that the pool had."""
    found = []
    for nodes in places(done, HOUR):
        played = part(done, HOUR, nodes)
        switched = next(point.setting for point, _ in played if point.system == "switch")
        mine = {point.system: one for point, one in played if point.setting.stores == switched.stores}
        found.append(entry(nodes, switched.switches, {name: mine[name] for name in NEEDED}))
    return found


def ledger(done: Done) -> Panel:
    """Return the panel of the ledger by number of nodes."""
    entries = _ledger_entries(done)
    xs = [one.nodes for one in entries]

    def line(values: Iterable[Interval]) -> tuple[Sequence[float], Sequence[Interval]]:
        return xs, list(values)

    extra_dollars = {
        one.nodes: Interval(one.extra_dollars, one.extra_dollars, one.extra_dollars) for one in entries
    }
    return Panel(
        "What management costs, and what it earns",
        [
            figures.lines(
                "an hour",
                "nodes",
                {
                    "digests": line(one.digests for one in entries),
                    "table updates": line(one.updates for one in entries),
                    "Writes": line(one.writes for one in entries),
                    "counters read": line(one.reads for one in entries),
                },
                True,
            ),
            figures.lines(
                "MB of messages, s of CPU, an hour",
                "nodes",
                {
                    "messages, MB": line(one.messages_mb for one in entries),
                    "CPU of controllers, s": line(one.controller_s for one in entries),
                    "of that reading counters, s": line(one.reading_s for one in entries),
                    "CPU of switches, s": line(one.switch_s for one in entries),
                },
                True,
            ),
            figures.lines(
                "mean and p99 sooner than the same storage nodes",
                "nodes",
                {
                    "mean": line(one.sooner for one in entries),
                    "p99": line(one.tail for one in entries),
                },
                True,
            ),
            figures.lines(
                "saved waiting, s an hour, its first twelfth left out",
                "nodes",
                {
                    "against the same storage nodes": (xs, [one.saved_s for one in entries]),
                    "against recomputing": (xs, [one.against_recompute_s for one in entries]),
                },
                True,
            ),
            figures.lines(
                "$ an hour, its first twelfth left out",
                "nodes",
                {
                    "waiting saved against the same storage nodes": line(
                        one.saved_dollars for one in entries
                    ),
                    "what the pool costs more": line(extra_dollars.values()),
                },
                True,
            ),
        ],
        ledger_table(entries),
        "Two storage nodes at any number of nodes. CPU is counts times a cost each, which was measured live.",
    )
