"""`make policies LIVE=yes`: what it costs that a policy hears only what a switch tells; with PLAYS, whether
a real live pool does what the replay of its requests says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from statistics import mean

from rich.console import Console
from rich.table import Table

from experiments.command import Screen
from experiments.intervals import Interval, mean_interval
from experiments.logs import open_network
from experiments.parallel import run_all
from experiments.policies.against import Figures, live_figures, told_all, told_as_live
from experiments.policies.live import ALL, TELLINGS, Replayed, replay_live
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
from workload.cost import CostModel
from workload.generate import generate
from workload.trace import Trace

Progress = Callable[[int], Callable[[], None]]


SEEDS = 5
"""Of each generated shape, from SEED on."""


@dataclass(frozen=True)
class _Job:
    group: str
    number: int
    blocks: int
    telling: Telling


def run_live(
    console: Console, options: Options, traces: Sequence[Trace], cost: CostModel, progress: Progress
) -> None:
    """The policy told all of a replay, and told what a switch tells, with each loss mended in turn."""
    groups = {trace.name: [trace] for trace in traces}
    if options.trace is None:
        seeds = range(options.seed, options.seed + SEEDS)
        groups = {
            shape: [generate(shape, seed, options.requests) for seed in seeds] for shape in options.shapes
        }
    jobs = [
        _Job(group, number, blocks, telling)
        for group, members in groups.items()
        for number in range(len(members))
        for blocks in options.blocks
        for telling in TELLINGS
    ]

    def run(job: _Job) -> Replayed:
        trace = groups[job.group][job.number]
        return replay_live(trace, job.blocks, job.telling, cost, options.seed)

    done = dict(zip(jobs, run_all(run, jobs, options.processes, progress(len(jobs))), strict=True))
    rows = []
    for blocks in options.blocks:
        for telling in TELLINGS:
            for group, members in groups.items():
                found = [done[_Job(group, number, blocks, telling)] for number in range(len(members))]
                whole = [done[_Job(group, number, blocks, ALL)] for number in range(len(members))]
                rows.append(Row(group, blocks, telling.name, *_means(found, whole)))
    print_live(console, rows)
    path = options.results / "live.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"revision": revision(), "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
    )


@dataclass(frozen=True, slots=True)
class Row:
    """What one way of telling gave, mean of a shape's traces."""

    trace: str
    blocks: int
    told: str
    saved: Interval
    """As a share of what a policy saves that is told all at once."""
    hits: float
    """The same of block hits."""
    reports_per_s: float
    fills: float
    delayed: float
    """What requests waited longer because of fills, as a share of what was saved."""


def _means(
    found: Sequence[Replayed], whole: Sequence[Replayed]
) -> tuple[Interval, float, float, float, float]:
    pairs = list(zip(found, whole, strict=True))
    saved_s = max(1e-9, sum(one.saved_s for one in found))
    return (
        mean_interval([one.saved_s / max(1e-9, other.saved_s) for one, other in pairs]),
        mean(one.block_hit / max(1e-9, other.block_hit) for one, other in pairs),
        mean(one.reports_per_s for one in found),
        mean(one.fills for one in found),
        sum(one.fill_delay_s for one in found) / saved_s,
    )


def print_live(console: Console, rows: Sequence[Row]) -> None:
    """A table for each size: shapes beside each other."""
    names = list(dict.fromkeys(row.trace for row in rows))
    for blocks in dict.fromkeys(row.blocks for row in rows):
        table = Table(
            title=f"{blocks:,} blocks: seconds saved, as a share of what a policy saves that is told all at "
            "once (mean, 95 %); blocks that homes sent for the pool; what those delayed, of what was saved"
        )
        for name in ("told", *names):
            table.add_column(name, no_wrap=True)
        for told in dict.fromkeys(row.told for row in rows):
            cells = []
            for row in rows:
                if (row.blocks, row.told) == (blocks, told):
                    interval = f" ±{row.saved.half:.2f}" if row.saved.half < float("inf") else ""
                    fills = f", {row.fills:,.0f}, {row.delayed:.2f}" if row.fills else ""
                    cells.append(f"{row.saved.mean:.3f}{interval}{fills}")
            table.add_row(told, *cells)
        console.print(table)


WAYS = ("told all", "told as live", "live")


def run_plays(screen: Screen, options: Options) -> None:
    """Play real pools, and replay what each was asked for; raises what `make run` does."""
    check_root()
    rows: list[_Row] = []
    gauging = Gauging(gauge)
    for seed in range(options.seed, options.seed + options.plays):
        chosen = drawn(seed, options.results / "plays", {"fill": options.fill, "news": _yes(options.news)})
        with screen.status(f"seed {seed}: {chosen.shape}, {chosen.pool_blocks} blocks"):
            one, readings = gauging.around(partial(play, screen, chosen))
        rows.append(_Row(seed, one, readings, ways(one, readings)))
        _print_play(screen, rows[-1])
    _print_differences(screen, [row.figures for row in rows])
    _write(options, rows)


@dataclass(frozen=True)
class _Row:
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
        tells_writes=options.news,
        entries_s=machine.entries_s,
        entry_digest_s=machine.entry_digest_s,
    )
    return dict(zip(WAYS, (told_all(one), told_as_live(one, telling), live_figures(one)), strict=True))


def _print_play(screen: Screen, row: _Row) -> None:
    one, options, scale = row.play, row.play.scenario.options, row.play.scenario.scale
    entries_ms = ", ".join(f"{1000 * each.entries_after_s(TYPICAL_LIST):.1f}" for each in row.readings)
    kept_up = "; ".join(one.complaints) or "kept up"
    table = Table(
        title=f"seed {row.seed}: {options.shape}, {options.hosts} nodes of {options.gpu_blocks} + "
        f"{options.dram_blocks} blocks, pool of {options.pool_blocks}, fill {options.fill}, news "
        f"{_yes(options.news)}, sigma {scale.sigma:g}, {scale.speed:.1f} times as fast; "
        f"{len(one.gets):,} blocks asked for; controller {one.controller_share:.1%} of the CPU; entries "
        f"{entries_ms} ms after a list of {TYPICAL_LIST}, before and after the play; {kept_up}"
    )
    for name in ("", *_NAMES):
        table.add_column(name.replace("_", " "), justify="right" if name else "left")
    for way, found in row.figures.items():
        table.add_row(way, *(_shown(getattr(found, name)) for name in _NAMES))
    screen.show(table)


def _print_differences(screen: Screen, rows: Sequence[dict[str, Figures]]) -> None:
    table = Table(title=f"differences to live, mean of {len(rows)} plays and 95 % interval")
    for name in ("", *_NAMES):
        table.add_column(name.replace("_", " "), justify="right" if name else "left")
    for way in WAYS[:-1]:
        found = differences(rows, way)
        cells = (f"{one.mean:+.1%} ± {one.half:.1%}" if (one := found.get(name)) else "" for name in _NAMES)
        table.add_row(way, *cells)
    screen.show(table)


def differences(rows: Sequence[dict[str, Figures]], way: str) -> dict[str, Interval]:
    """Relative difference to live by figure; none where live has nothing."""
    found = {}
    for name in _NAMES:
        pairs = [(getattr(row[way], name), getattr(row["live"], name)) for row in rows]
        if all(live for _, live in pairs):
            found[name] = mean_interval([one / live - 1 for one, live in pairs])
    return found


_NAMES = [field.name for field in fields(Figures)]


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _write(options: Options, rows: Sequence[_Row]) -> None:
    path = options.results / "plays.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = [row.figures for row in rows]
    content = {
        "revision": revision(),
        "plays": [
            {
                "seed": row.seed,
                "shape": row.play.scenario.options.shape,
                "blocks": row.play.scenario.options.pool_blocks,
                "fill": row.play.scenario.options.fill,
                "news": row.play.scenario.options.news,
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
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
