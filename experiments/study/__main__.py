"""make study: where the pool pays, by simulation, with a report that opens offline."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.progress import TextColumn
from rich.table import Table as Shown

from commands.command import Screen, run_command
from emulator.result import revision
from experiments.page.report import NAME
from experiments.study.compute import Computer, cluster
from experiments.study.first import first_table
from experiments.study.hours import FEW_SEEDS, HOUR, LARGEST_SEEDED, SEEDS
from experiments.study.options import SWEEPS, StudyOptions, parse_options
from experiments.study.pace import Pace
from experiments.study.panels import panels
from experiments.study.panels.front import front
from experiments.study.panels.panel import Found
from experiments.study.plan import points
from experiments.study.player import Player
from experiments.study.report import Report, write_page
from experiments.study.results import ResultStore
from experiments.study.setting_map import MAP
from experiments.study.space import SPACE
from experiments.study.summary import as_text, summary
from experiments.study.systems import Setting
from experiments.study.table import Table, points_table
from simulator.checks import check
from simulator.compiled import engine

INTERRUPTED = "interrupted; what was computed is kept, and the same command goes on from there"


def main(arguments: Sequence[str]) -> int:
    """Run the study and return the exit code: 0, or 2 if it could not run."""
    return run_command(
        arguments,
        lambda given: parse_options(given, "weir study", __doc__ or ""),
        _run,
        INTERRUPTED,
    )


def _run(screen: Screen, options: StudyOptions) -> int:
    screen.say(f"Report: {_study(options, screen)}")
    return 0


def _study(options: StudyOptions, screen: Screen) -> Path:
    began_s = time.monotonic()
    centre = Setting(requests=options.requests_played, seed=options.seed)
    space = options.points if SPACE in options.sweeps else 0
    planned = [
        point
        for point in points(centre, options.traced(centre), options.quick, space)
        if point.sweep in options.sweeps
    ]
    for point in planned:
        check(point.scenario)
    store = ResultStore(options.results / "points")
    with (
        cluster(options.scheduler, options.workers) as client,
        screen.progress(TextColumn("{task.fields[known]} known already {task.fields[pace]}")) as progress,
    ):
        task = progress.add_task("simulations", total=None, known=0, pace="")
        pace = Pace()

        def show(done: int, total: int, known: int) -> None:
            speed = pace.text(done, total, known)
            progress.update(task, completed=done, total=total, known=known, pace=speed)

        player = Player(
            options, Computer(client, store, show, grows=bool(options.scheduler)).simulate_until, began_s
        )
        for sweep in (name for name in SWEEPS if name in options.sweeps):
            progress.update(task, description=sweep)
            player.play(sweep, centre, [point for point in planned if point.sweep == sweep])
        progress.update(task, description="more seeds")
        player.remaining_seeds()
    found = player.found()
    _write(options, about(options, found, began_s), found)
    first = first_table(found.done)
    if first.rows:
        screen.show(_shown(first))
    if found.coarse:
        out = sum(not one.seeds for one in found.coarse)
        screen.say(
            f"Means wider than wanted (±1 %, in the map ±0.5 %): {len(found.coarse)} comparisons, {out} of "
            "them out."
        )
    return options.results / NAME


def about(options: StudyOptions, found: Found, began_s: float) -> dict[str, object]:
    """Return how the figures were made, for report and summary."""
    seeds = [len(sample.runs) for point, sample in found.done if point.sweep not in (HOUR, SPACE)]
    few, many = (options.seed - 1 + number for number in (min(seeds, default=0), max(seeds, default=0)))
    last = f"{many}" if few == many else f"{few} at least and {many} at most"
    return {
        "revision": revision(),
        "engine": engine(),
        "seeds": f"{options.seed} to {last}, the same for all that is compared (an hour: {SEEDS} with "
        f"{LARGEST_SEEDED} nodes at most, else {FEW_SEEDS}; each setting of the sweep over the whole space: "
        "one)",
        "intervals": "95 %, Student's t over the seeds, differences seed by seed; significantly: all of the "
        "ratio's interval on one side of 1, its mean by 0.05 % at least; no different: all of it within "
        "±0.5 %; one in twenty comparisons without a difference shows one by chance",
        "requests of each simulation": f"{options.requests_played}, more where a sweep says so",
        "start, steady": "first and second half of the arrivals",
        "sweeps": ", ".join(options.sweeps),
        "points": len(found.done),
        "trace": options.trace.name if options.trace else "none, generated traffic only",
        "made in": f"{(time.monotonic() - began_s) / 60:.1f} minutes, points known before not included",
    }


def _write(options: StudyOptions, about_run: dict[str, object], found: Found) -> None:
    everything = points_table(found.done)
    shown_panels = panels(found)
    own = [
        panel.table
        for panel in shown_panels
        if panel.table.name.startswith((MAP, "budgets", "ledger", "tornado", SPACE))
    ]
    for table in (everything, *own):
        (options.results / f"{table.name}.csv").write_text(table.csv())
    record = summary(about_run, found.done, options.seed, found.coarse, own)
    (options.results / "summary.json").write_text(as_text(record))
    shown = points_table([pair for pair in found.done if pair[0].sweep != SPACE])  # too many to show
    report = Report(front(found.done), first_table(found.done), about_run, found.coarse, shown_panels, shown)
    write_page(options.results / NAME, report)


def _shown(table: Table) -> Shown:
    """Return the table in the form that the terminal shows."""
    shown = Shown(*table.columns, title="How much sooner the first token comes, ± 95 %", title_justify="left")
    for row in table.rows:
        shown.add_row(*map(str, row))
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
