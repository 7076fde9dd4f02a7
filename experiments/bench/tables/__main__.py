"""make bench WHAT=tables: compare a router's large tables with one exact match, and with BMv2."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Within
from commands.options import read
from commands.precedence import precedence
from emulator.result import revision
from experiments.bench.switch.measure import Bench
from experiments.bench.switch.plan import encode
from experiments.bench.switch.run import Cpus, choose_cpus
from experiments.bench.tables.cases import BATCHES, CASES, COMPARED_WITH_BMV2, INSERTS, ON_PORTS, Case
from experiments.bench.tables.entries import Content
from experiments.bench.tables.ports import Router, workload
from experiments.bench.tables.share import Loaded
from experiments.page import Section, bars, write_report
from topologies.engines import ENGINES, Bmv2, Embedded, make_engine
from topologies.errors import EngineError
from topologies.machine_check import check_machine

SUMMARY = "summary.json"
DESCRIPTION = """\
Measure what large tables cost. First the CPU time of a packet in the program alone, in the embedded switch's
library form: with one exact match, and with a router's routes, access list and next hops. Then packets and
P4Runtime inserts a second on veth cables, beside BMv2 where simple_switch_grpc and p4c-bm2-ss are on PATH.
The second part needs root and two cores. docs/performance.md says how to read it."""


@dataclass
class Results:
    """Results of a run by case, those on veth cables by case and engine."""

    packet_ns: dict[str, list[float]] = field(default_factory=dict)
    """CPU time of a packet in the library form in each round, in ns."""
    inserts_per_s: dict[str, float] = field(default_factory=dict)
    ports: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    writes: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """P4Runtime inserts a second in each round, by engine and entries a Write."""


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TablesOptions:
    """Options of `make bench WHAT=tables`, which measures what large tables cost the switch."""

    rounds: Annotated[int, Within(1, 1000)] = 5
    """Number of rounds; each measures every case."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the tables and of the order of packets."""
    ports: bool = True
    """1: measure on veth cables too, which needs root."""
    seconds: Annotated[float, Within(0.05, 10)] = 0.5
    """Seconds that the load generator sends in one of its runs on veth cables."""
    results: Path = Path("results/bench-tables")
    """Folder for summary.json."""


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Returns exit code 0 if it measured, 2 if it could not."""
    program = "weir bench tables"
    return run_command(arguments, lambda given: read(TablesOptions, given, program, DESCRIPTION), _run)


def _run(screen: Screen, options: TablesOptions) -> int:
    results = Results()
    contents = {case.name: case.make(options.seed) for case in CASES}
    with screen.status("the program's own share") as show:
        _measure_share(contents, options.rounds, results, show)
        if options.ports:
            check_machine()
            _measure_ports(contents, options, results, screen, show)
            _measure_writes(contents, options, results, screen, show)
    _print(screen, results)
    path = options.results / SUMMARY
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = {"seed": options.seed, "revision": revision(), "rounds": options.rounds, **asdict(results)}
    path.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    page = _write_page(options, results)
    screen.say(f"Written to {path}; to look at: {page}")
    return 0


def _write_page(options: TablesOptions, results: Results) -> Path:
    about = {
        "seed": options.seed, "revision": revision(), "engine": "embedded", "rounds": options.rounds,
    }  # fmt: skip
    medians = {name: statistics.median(values) for name, values in results.packet_ns.items()}
    titles = {case.name: case.title for case in CASES}
    rows = [[titles[name], ns, results.inserts_per_s[name]] for name, ns in medians.items()]
    plots = [
        bars("CPU time a packet, ns", [titles[name] for name in medians], {"ns": list(medians.values())})
    ]
    heads = ["tables", "ns a packet (median)", "inserts/s (library)"]
    sections = [Section("The program's own share", "share", heads, rows, plots)]
    if results.ports:
        names = ("lossless_per_s", "overload_per_s", "inserts_per_s")
        on_ports = [
            [titles[name], engine, *(measured[figure] for figure in names)]
            for name, engines in results.ports.items()
            for engine, measured in engines.items()
        ]
        heads = ["tables", "engine", "no loss/s", "overload/s", "P4Runtime inserts/s"]
        sections.append(Section("On veth cables", "ports", heads, on_ports))
    if results.writes:
        sections.append(
            Section("P4Runtime inserts", "writes", ["entries a Write", *results.writes], _write_rows(results))
        )
    return write_report(options.results, "make bench WHAT=tables: what large tables cost", about, sections)


def _write_rows(results: Results) -> list[list[Any]]:
    """Return a row for each number of entries a Write, with each engine's median."""
    return [
        [batch, *(statistics.median(rates[batch]) for rates in results.writes.values())] for batch in BATCHES
    ]


def _measure_share(contents: dict[str, Content], rounds: int, results: Results, show: Any) -> None:
    """Load all cases, then measure them in turns."""
    with contextlib.ExitStack() as stack:
        loaded = {}
        for case in CASES:
            show(f"writing entries: {case.title}")
            loaded[case.name] = stack.enter_context(Loaded(case, contents[case.name]))
            results.inserts_per_s[case.name] = loaded[case.name].inserts_per_s
        for number in range(rounds):
            for name, switch in loaded.items():
                show(f"round {number + 1}/{rounds}: {name}")
                results.packet_ns.setdefault(name, []).append(switch.packet_ns())


def _measure_ports(
    contents: dict[str, Content], options: TablesOptions, results: Results, screen: Screen, show: Any
) -> None:
    cores = choose_cpus()
    for case in (case for case in CASES if case.name in ON_PORTS):
        engines = ENGINES if case.name in COMPARED_WITH_BMV2 else (Embedded.name,)
        for name in engines:
            show(f"{case.title}: {name}")
            with contextlib.ExitStack() as stack:
                router = _router(stack, name, case, contents[case.name], cores, screen)
                if router is None:
                    continue
                measured = _on_ports(router, case, contents[case.name], cores.generator, options)
                results.ports.setdefault(case.name, {})[name] = measured


def _measure_writes(
    contents: dict[str, Content], options: TablesOptions, results: Results, screen: Screen, show: Any
) -> None:
    """Start all engines; then measure them in turns, for each number of entries a Write."""
    cores = choose_cpus()
    (case,) = (case for case in CASES if case.name == INSERTS)
    with contextlib.ExitStack() as stack:
        built = {name: _router(stack, name, case, contents[case.name], cores, screen) for name in ENGINES}
        routers = {name: router for name, router in built.items() if router}
        for number in range(options.rounds):
            for batch, most in BATCHES.items():
                for name, router in routers.items():
                    show(f"inserts, {batch} a Write, round {number + 1}/{options.rounds}: {name}")
                    rate = router.measure_inserts(batch, most)
                    results.writes.setdefault(name, {}).setdefault(batch, []).append(rate)


def _router(
    stack: contextlib.ExitStack, engine: str, case: Case, content: Content, cores: Cpus, screen: Screen
) -> Router | None:
    """Start the engine with the case's entries; return None, after a warning, if it is not installed."""
    try:
        built = make_engine(engine)
    except EngineError as error:
        screen.warn(str(error), f"without {engine}")
        return None
    stack.enter_context(precedence())
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-")))
    own = cores.both if engine == Bmv2.name else cores.engine
    return stack.enter_context(Router(built, case, content, directory, own))


def _on_ports(
    router: Router,
    case: Case,
    content: Content,
    generator: str,
    options: TablesOptions,
) -> dict[str, Any]:
    work = workload(case, content)
    plan = router.directory / "frames.plan"
    plan.write_bytes(encode(work.make_plan(options.seed)))
    bench = Bench(router, generator, options.seconds, {case.name: plan})
    return {"inserts_per_s": router.inserts_per_s, **asdict(bench.measure(work, lambda _: None))}


def _print(screen: Screen, results: Results) -> None:
    table = Table(title="The program's own share")
    for heading in ("", "ns a packet", "to one exact match", "inserts /s (library)"):
        table.add_column(heading, justify="left" if not heading else "right")
    medians = {name: statistics.median(values) for name, values in results.packet_ns.items()}
    for case in CASES:
        ratio = f"{medians[case.name] / medians[case.reference]:.2f}" if case.reference else ""
        inserts = f"{results.inserts_per_s[case.name]:,.0f}"
        table.add_row(case.title, f"{medians[case.name]:.0f}", ratio, inserts)
    screen.show(table)
    if not results.ports:
        return
    table = Table(title="On veth cables")
    for heading in ("", "engine", "no loss /s", "overload /s", "P4Runtime inserts /s"):
        table.add_column(heading, justify="left" if heading in ("", "engine") else "right")
    titles = {case.name: case.title for case in CASES}
    for name, engines in results.ports.items():
        for engine, measured in engines.items():
            figures = (measured[key] for key in ("lossless_per_s", "overload_per_s", "inserts_per_s"))
            table.add_row(titles[name], engine, *(f"{figure:,.0f}" for figure in figures))
    screen.show(table)
    table = Table(title="P4Runtime inserts /s, by entries a Write")
    for heading in ("entries a Write", *results.writes):
        table.add_column(heading, justify="right")
    for batch, *rates in _write_rows(results):
        table.add_row(str(batch), *(f"{rate:,.0f}" for rate in rates))
    screen.show(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
