"""`make policies PLAYS=5`: whether a real live pool does what the replay of its requests says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from functools import partial
from itertools import product
from statistics import mean

from rich.table import Table

from experiments.command import Screen
from experiments.intervals import Interval, mean_interval, ratio_interval
from experiments.logs import open_network
from experiments.policies.against import Figures, live_figures, told_all, told_as_live
from experiments.policies.options import Options
from experiments.policies.played import Play, drawn, played
from experiments.policies.told import Telling
from experiments.run.emulation import Emulation
from experiments.run.modes import MODES
from experiments.run.options import RunOptions
from experiments.run.result import PROGRAM, revision
from experiments.run.scenario import make_scenario
from experiments.validate.gauge import TYPICAL_LIST, Gauging, Reading, gauge, mean_of
from topologies.engines import make_engine
from topologies.network import check_root

WAYS = ("told all", "told as live", "live")


def run_plays(screen: Screen, options: Options) -> None:
    """Play real pools, and replay what each was asked for; raises what `make run` does."""
    check_root()
    rows: list[Row] = []
    gauging = Gauging(gauge)
    seeds = range(options.seed, options.seed + options.plays)
    for seed, turn in product(seeds, range(1, options.turns + 1)):
        fixed = {"fill": options.fill, "expect": _yes(options.expect)}
        chosen = drawn(seed, options.results / "plays", fixed)
        said = f"seed {seed}, turn {turn} of {options.turns}: {chosen.shape}, {chosen.pool_blocks} blocks"
        with screen.status(said):
            one, readings = gauging.around(partial(play, screen, chosen))
        rows.append(Row(seed, one, readings, ways(one, readings)))
        _print_play(screen, rows[-1])
        _write(options, rows)  # each time: what was played is kept if a later play fails
    if options.turns > 1:
        _print_turns(screen, rows)
    _print_differences(screen, scenarios(rows))


@dataclass(frozen=True)
class Row:
    """A play, and what its replays have."""

    seed: int
    play: Play
    readings: tuple[Reading, ...]
    """Of the machine, before the play and after it."""
    figures: dict[str, Figures]
    """By way."""


def play(screen: Screen, chosen: RunOptions) -> Play:
    """One real pool, played once."""
    scenario, engine = make_scenario(chosen), make_engine(chosen.engine)
    about = {"revision": revision(), "seed": chosen.seed}
    with open_network(screen, scenario.fabric, engine, chosen.results, about) as network:
        artifacts = engine.compile(PROGRAM, scenario.defines, network.directory)
        measured = Emulation(scenario, network, artifacts).play(MODES["pool"], lambda *_: None)
    return played(scenario, measured)


def ways(one: Play, readings: Sequence[Reading]) -> dict[str, Figures]:
    """A play's figures, by way; what is told as live has its entries as late as the machine then had."""
    options, machine = one.scenario.options, mean_of(readings)
    telling = Telling(
        "as live",
        fill=options.fill,
        expects=options.expect,
        entries_s=machine.entries_s,
        entry_digest_s=machine.entry_digest_s,
    )
    return dict(zip(WAYS, (told_all(one), told_as_live(one, telling), live_figures(one)), strict=True))


def _print_play(screen: Screen, row: Row) -> None:
    one, options, scale = row.play, row.play.scenario.options, row.play.scenario.scale
    entries_ms = ", ".join(f"{1000 * each.entries_after_s(TYPICAL_LIST):.1f}" for each in row.readings)
    kept_up = "; ".join(one.complaints) or "kept up"
    table = Table(
        title=f"seed {row.seed}: {options.shape}, {options.hosts} nodes of {options.gpu_blocks} + "
        f"{options.dram_blocks} blocks, pool of {options.pool_blocks}, fill {options.fill}, expect "
        f"{_yes(options.expect)}, sigma {scale.sigma:g}, {scale.speed:.1f} times as fast; "
        f"{len(one.gets):,} blocks asked for; controller {one.controller_share:.1%} of the CPU; entries "
        f"{entries_ms} ms after a list of {TYPICAL_LIST}, before and after the play; {kept_up}"
    )
    for name in ("", *row.figures):
        table.add_column(name, justify="right" if name else "left")
    for name in _NAMES:
        table.add_row(_spoken(name), *(_shown(getattr(found, name)) for found in row.figures.values()))
    screen.show(table)


def scenarios(rows: Sequence[Row]) -> list[dict[str, Figures]]:
    """The means over all turns of a seed, by way."""
    by_seed: dict[int, list[dict[str, Figures]]] = {}
    for row in rows:
        by_seed.setdefault(row.seed, []).append(row.figures)
    return [
        {way: Figures(*map(mean, zip(*(astuple(turn[way]) for turn in turns), strict=True))) for way in WAYS}
        for turns in by_seed.values()
    ]


def _print_turns(screen: Screen, rows: Sequence[Row]) -> None:
    """How far plays of the same scenario, and their replays, are apart."""
    table = Table(title="least, mean and most of all turns")
    for name in ("seed", "way", *map(_spoken, _SPREAD)):
        table.add_column(name, justify="right")
    for seed in dict.fromkeys(row.seed for row in rows):
        for way in WAYS:
            turns = [row.figures[way] for row in rows if row.seed == seed]
            found = [[getattr(turn, name) for turn in turns] for name in _SPREAD]
            cells = [", ".join(map(_shown, (min(values), mean(values), max(values)))) for values in found]
            table.add_row(str(seed), way, *cells)
    screen.show(table)


def _print_differences(screen: Screen, rows: Sequence[dict[str, Figures]]) -> None:
    table = Table(title=f"more than live, {len(rows)} scenarios: in sum, and their mean; with 95 %")
    found = {
        f"{way}, {kind}": compare(rows, way)
        for way in WAYS[:-1]
        for kind, compare in (("in sum", in_sum), ("mean", differences))
    }
    for name in ("", *found):
        table.add_column(name, justify="right" if name else "left")
    for name in _NAMES:
        cells = (f"{100 * one[name]:+.1f} %" if name in one else "" for one in found.values())
        table.add_row(_spoken(name), *cells)
    screen.show(table)


def in_sum(rows: Sequence[dict[str, Figures]], way: str) -> dict[str, Interval]:
    """Relative difference of the sums over all scenarios, by figure; none where live has nothing."""
    found = {}
    for name in _NAMES:
        pairs = [(getattr(row[way], name), getattr(row["live"], name)) for row in rows]
        if any(live for _, live in pairs):
            found[name] = ratio_interval([(one - live, live) for one, live in pairs])
    return found


def differences(rows: Sequence[dict[str, Figures]], way: str) -> dict[str, Interval]:
    """Relative difference to live by figure, mean over the scenarios; none where live has nothing."""
    found = {}
    for name in _NAMES:
        pairs = [(getattr(row[way], name), getattr(row["live"], name)) for row in rows]
        if all(live for _, live in pairs):
            found[name] = mean_interval([one / live - 1 for one, live in pairs])
    return found


_NAMES = [field.name for field in fields(Figures)]
_SPREAD = ("block_hits", "saved_s", "admissions")


def _spoken(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ") + (", s" if name.endswith("_s") else "")


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _write(options: Options, rows: Sequence[Row]) -> None:
    path = options.results / "plays.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = scenarios(rows)
    content = {
        "revision": revision(),
        "plays": [
            {
                "seed": row.seed,
                "shape": row.play.scenario.options.shape,
                "blocks": row.play.scenario.options.pool_blocks,
                "fill": row.play.scenario.options.fill,
                "expect": row.play.scenario.options.expect,
                "controller_share": round(row.play.controller_share, 4),
                "machine": [asdict(each) for each in row.readings],
                "complaints": row.play.complaints,
                **{way: asdict(found) for way, found in row.figures.items()},
            }
            for row in rows
        ],
        "differences": {
            way: {name: asdict(one) for name, one in differences(figures, way).items()} for way in WAYS[:-1]
        },
        "in_sum": {
            way: {name: asdict(one) for name, one in in_sum(figures, way).items()} for way in WAYS[:-1]
        },
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
