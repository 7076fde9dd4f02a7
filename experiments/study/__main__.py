"""make study: where the pool pays, by simulation, with a report that opens offline."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.progress import TextColumn

from experiments.command import Screen, run_command
from experiments.run.result import revision
from experiments.simulator.scenario import Scenario
from experiments.simulator.simulation import prepare
from experiments.study.answers import answers
from experiments.study.compute import Computer, cluster
from experiments.study.options import BREAK_EVEN, StudyOptions, parse_options
from experiments.study.panels import panels
from experiments.study.plan import REQUESTS_A_NODE, points
from experiments.study.report import page
from experiments.study.results import ResultStore
from experiments.study.sample import Sample, seeded
from experiments.study.search import Edge, break_even, surface_settings
from experiments.study.summary import summary
from experiments.study.systems import Setting
from experiments.study.table import edges_table, points_table

INTERRUPTED = "interrupted; what was computed is kept, and the same command goes on from there"


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 where it could not run."""
    return run_command(
        arguments,
        lambda given: parse_options(given, "python -m experiments.study", __doc__ or ""),
        _run,
        INTERRUPTED,
    )


def _run(screen: Screen, options: StudyOptions) -> int:
    screen.say(f"Report: {_study(options, screen)}")
    return 0


def _study(options: StudyOptions, screen: Screen) -> Path:
    began_s = time.monotonic()
    centre = Setting(requests=options.requests_played, seed=options.seed)
    planned = [
        point for point in points(centre, options.trace, options.quick) if point.sweep in options.sweeps
    ]
    for point in planned:
        prepare(point.scenario)
    store = ResultStore(options.results / "points")
    with (
        cluster(options.scheduler, options.workers) as client,
        screen.progress(TextColumn("{task.fields[known]} known already")) as progress,
    ):
        task = progress.add_task("simulations", total=None, known=0)

        def show(done: int, total: int, known: int) -> None:
            progress.update(task, completed=done, total=total, known=known)

        computer = Computer(client, store, show)
        sampled = partial(samples, computer, options)
        done = list(zip(planned, sampled([point.scenario for point in planned]), strict=True))
        edges: list[Edge] = []
        if BREAK_EVEN in options.sweeps:
            progress.update(task, description="break-even")
            edges = break_even(surface_settings(centre, options.quick), options.quick, sampled)
    about = {
        "revision": revision(),
        "engine": "simulator",
        "seeds": f"{options.seed} to {options.seed + options.seeds_played - 1}, the same for all systems",
        "intervals": "95 %, by Student's t over the seeds; differences seed by seed",
        "requests of each simulation": f"{options.requests_played}, among the rivals at least "
        f"{0 if options.quick else REQUESTS_A_NODE} a node",
        "start, steady": "first and second half of the arrivals",
        "sweeps": ", ".join(options.sweeps),
        "points": len(done),
        "trace": options.trace.name if options.trace else "none, generated traffic only",
        "made in": f"{time.monotonic() - began_s:.0f} s",
    }
    everything = points_table(done)
    for table in (everything, edges_table(edges)):
        (options.results / f"{table.name}.csv").write_text(table.csv())
    (options.results / "summary.json").write_text(json.dumps(summary(about, done, options.seed), indent=1))
    told = answers(done, edges)
    for number, answer in enumerate(told, 1):
        screen.show(f"{number}. {answer}")
    report = options.results / "report.html"
    report.write_text(
        page("When does a pool in the switch pay?", about, told, panels(done, edges), everything)
    )
    return report


def samples(computer: Computer, options: StudyOptions, scenarios: Sequence[Scenario]) -> list[Sample]:
    """Each scenario with all seeds, all of them at once on the cluster."""
    wanted = [seeded(scenario, options.seed, options.seeds_played) for scenario in scenarios]
    figures = iter(computer.all([one for seeds in wanted for one in seeds]))
    return [Sample(tuple(next(figures) for _ in seeds)) for seeds in wanted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
