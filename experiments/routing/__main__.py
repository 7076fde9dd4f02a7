"""make routing: schedulers against what nodes share, simulated at real scale on the same requests.

Beluga's point (arXiv 2511.20172) is that a pool which all nodes reach makes routing by locality unnecessary.
So round robin and load balancing with a pool are set against locality, and Mooncake's conductor, without one:
ratios of the same requests, seed by seed. `own`: nodes have their own memory only; `stores`: and storage
nodes; `pool`: and the switch's pool. Writes results/routing/summary.json and report.html.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.cores import whole_cores
from commands.declarations import DECLARED, OneOf, Within
from commands.intervals import Interval, mean_interval
from commands.options import read
from commands.parallel import run_all
from emulator.result import revision
from experiments.page import Section, bars, write_report
from scenario import Scenario
from simulator.compiled import engine
from simulator.simulation import simulate
from workload.schedule import SCHEDULERS
from workload.shapes import SHAPES

SHARED: dict[str, dict[str, dict[str, Any]]] = {
    "own": {"nodes": {"gate": "never"}, "pool": {"memory": "none"}},
    "stores": {"nodes": {"gate": "compare"}, "pool": {"memory": "none"}},
    "pool": {"nodes": {"gate": "compare"}},
}
POINT = tuple((blind, aware) for aware in ("locality", "conductor") for blind in ("round_robin", "balanced"))
"""What looks at no prefix, with a pool, over what does, without one."""
POINT_TITLE = "Beluga's point: blind with a pool over aware without, same requests"
POINT_TITLES = ("shape", "load", "with a pool", "without", "TTFT mean", "prefill computed")
SHARED_TEXT = (
    "own: nodes have their own memory only; stores: and storage nodes; pool: and the switch's pool. Means "
    "over the seeds."
)
FIGURES = {
    "ttft_mean_s": "TTFT mean, s",
    "ttft_p99_s": "TTFT p99, s",
    "prefill_s": "prefill, s",
    "held_share": "held by the node, share",
    "storage_gbyte": "from stores, GB",
}


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class RoutingOptions:
    """What is compared, and under which load."""

    shapes: tuple[Annotated[str, OneOf(SHAPES)], ...] = ("agents", "chat")
    """Shapes of the generated traces."""
    loads: tuple[Annotated[float, Within(0.01, 1000)], ...] = (1.0, 2.0)
    """Times the traffic's own rate."""
    schedulers: tuple[Annotated[str, OneOf(SCHEDULERS)], ...] = SCHEDULERS[1:]
    """Who decides which node serves."""
    hosts: Annotated[int, Within(1, 256)] = 8
    """Inference nodes."""
    requests: Annotated[int, Within(10, 100_000)] = 800
    """Of each simulation."""
    seeds: Annotated[int, Within(1, 30)] = 5
    """Simulations of each case."""
    results: Path = Path("results/routing")
    """Folder for the results."""


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the table."""

    shape: str
    load: float
    scheduler: str
    shared: str

    def scenario(self, options: RoutingOptions, seed: int) -> Scenario:
        """With one seed."""
        workload = {"shape": self.shape, "load": self.load, "scheduler": self.scheduler, "seed": seed}
        scenario = Scenario().changed(workload=workload | {"requests": options.requests})
        return scenario.changed(nodes={"count": options.hosts}).changed(**SHARED[self.shared])


Cells = dict[Case, dict[str, Interval]]
Seeds = dict[Case, list[Mapping[str, float]]]


def main(arguments: Sequence[str]) -> int:
    """Exit code 0; 2 for bad input."""

    def parse(given: Sequence[str]) -> RoutingOptions:
        return read(RoutingOptions, given, "weir routing", __doc__ or "")

    return run_command(arguments, parse, _run)


def _run(screen: Screen, options: RoutingOptions) -> int:
    seeds = compute(options, screen)
    cells = {
        case: {name: mean_interval([one[name] for one in found]) for name in FIGURES}
        for case, found in seeds.items()
    }
    for shape, load in itertools.product(options.shapes, options.loads):
        screen.show(_table(shape, load, cells))
    ratios = point(seeds)
    if ratios:
        screen.show(_point_table(ratios))
    page = _write_page(options, cells, ratios)
    screen.say(f"Written to {_write(options, cells, ratios)}; to look at: {page}")
    return 0


def compute(options: RoutingOptions, screen: Screen) -> Seeds:
    """All cases with all seeds, over the cores of the machine."""
    sides = (options.shapes, options.loads, options.schedulers, SHARED)
    cases = [Case(*values) for values in itertools.product(*sides)]
    jobs = [(case, seed) for case in cases for seed in range(1, options.seeds + 1)]

    def work(job: tuple[Case, int]) -> Mapping[str, float]:
        return _figures(job[0].scenario(options, job[1]))

    with screen.progress() as progress:
        task = progress.add_task("simulating", total=len(jobs))
        done = run_all(work, jobs, whole_cores(), lambda: progress.advance(task))
    by_case: Seeds = {case: [] for case in cases}
    for (case, _), figures in zip(jobs, done, strict=True):
        by_case[case].append(figures)
    return by_case


@dataclass(frozen=True, slots=True)
class Ratio:
    """A scheduler blind to prefixes with a pool, over one that sees them without: seed by seed."""

    shape: str
    load: float
    blind: str
    aware: str
    ttft: Interval
    prefill: Interval

    def cells(self) -> list[str]:
        """Of a table."""
        return [f"{of:.2f}" for of in (self.ttft, self.prefill)]


def point(seeds: Seeds) -> list[Ratio]:
    """Where both of a pair were simulated."""
    ratios = []
    for shape, load in dict.fromkeys((case.shape, case.load) for case in seeds):
        for blind, aware in POINT:
            ours = seeds.get(Case(shape, load, blind, "pool"), [])
            theirs = seeds.get(Case(shape, load, aware, "own"), [])
            pairs = list(zip(ours, theirs, strict=False))
            if pairs:
                ttft, prefill = (
                    mean_interval([one[name] / other[name] for one, other in pairs])
                    for name in ("ttft_mean_s", "prefill_s")
                )
                ratios.append(Ratio(shape, load, blind, aware, ttft, prefill))
    return ratios


def _figures(scenario: Scenario) -> Mapping[str, float]:
    result = simulate(scenario)
    total = sum(result.blocks.values())
    return {
        "ttft_mean_s": result.ttft_s.mean,
        "ttft_p99_s": result.ttft_s.p99,
        "prefill_s": result.prefill_s,
        "held_share": (result.blocks["gpu"] + result.blocks["dram"]) / total,
        "storage_gbyte": result.storage_egress_bytes / 1e9,
    }


def _table(shape: str, load: float, cells: Cells) -> Table:
    table = Table(
        title=f"{shape}, {load:g} times its rate: mean ± 95 % interval over seeds", title_justify="left"
    )
    for title in ("scheduler", "shared", *FIGURES.values()):
        table.add_column(title, justify="left" if title in ("scheduler", "shared") else "right")
    for case, found in cells.items():
        if (case.shape, case.load) == (shape, load):
            shown = [f"{found[name].mean:,.3g} ± {found[name].half:,.2g}" for name in FIGURES]
            table.add_row(case.scheduler, case.shared, *shown)
    return table


def _write_page(options: RoutingOptions, cells: Cells, ratios: list[Ratio]) -> Path:
    """A section a table; a simulation has no machine that could be too slow."""
    about = {
        "seed": f"1 to {options.seeds}, the same for all", "revision": revision(), "engine": engine(),
        "nodes": options.hosts, "requests of each simulation": options.requests,
    }  # fmt: skip
    titles = ["scheduler", "shared", *(part for name in FIGURES.values() for part in (name, "± (95 %)"))]
    sections = []
    for shape, load in itertools.product(options.shapes, options.loads):
        some = {case: of for case, of in cells.items() if (case.shape, case.load) == (shape, load)}
        rows = [
            [
                case.scheduler, case.shared,
                *(f"{part:,.3g}" for name in FIGURES for part in (of[name].mean, of[name].half)),
            ]
            for case, of in some.items()
        ]  # fmt: skip
        schedulers = list(dict.fromkeys(case.scheduler for case in some))
        plots = [
            bars(
                FIGURES[name],
                schedulers,
                {
                    shared: [of[name].mean for case, of in some.items() if case.shared == shared]
                    for shared in SHARED
                },
            )
            for name in ("ttft_mean_s", "prefill_s")
        ]
        heading = f"{shape}, {load:g} times its rate"
        sections.append(Section(heading, f"{shape}-{load:g}", titles, rows, plots, SHARED_TEXT))
    if ratios:
        rows = [[one.shape, f"{one.load:g}", one.blind, one.aware, *one.cells()] for one in ratios]
        sections.insert(0, Section(POINT_TITLE, "point", POINT_TITLES, rows, [], ""))
    return write_report(options.results, "make routing: schedulers and what nodes share", about, sections)


def _point_table(ratios: list[Ratio]) -> Table:
    table = Table(title=POINT_TITLE, title_justify="left")
    for title in POINT_TITLES:
        table.add_column(title, justify="left" if title in ("shape", "with a pool", "without") else "right")
    for one in ratios:
        table.add_row(one.shape, f"{one.load:g}", one.blind, one.aware, *one.cells())
    return table


def _write(options: RoutingOptions, cells: Cells, ratios: list[Ratio]) -> Path:
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "summary.json"
    record = {
        "revision": revision(),
        "engine": engine(),
        "hosts": options.hosts,
        "requests": options.requests,
        "seeds": options.seeds,
        "cases": [
            asdict(case) | {name: {"mean": of.mean, "half": of.half} for name, of in found.items()}
            for case, found in cells.items()
        ],
        "point": [
            {"shape": one.shape, "load": one.load, "with_pool": one.blind, "without": one.aware}
            | {
                name: {"mean": of.mean, "half": of.half}
                for name, of in (("ttft_ratio", one.ttft), ("prefill_ratio", one.prefill))
            }
            for one in ratios
        ],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
