"""make bench-tables: a router with large tables against one exact match, and against BMv2."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from experiments.bench_switch.measure import Bench
from experiments.bench_switch.plan import encode
from experiments.bench_switch.run import choose_cpus
from experiments.bench_tables.cases import CASES, ON_PORTS, Case
from experiments.bench_tables.entries import Content
from experiments.bench_tables.ports import Router, workload
from experiments.bench_tables.share import Loaded
from experiments.command import Screen, run_command
from experiments.options import Option, number, parse_into, whole, yes_or_no
from experiments.page import Section, bars, write_report
from experiments.precedence import precedence
from experiments.run.result import revision
from topologies.engines import ENGINES, Bmv2, make_engine
from topologies.errors import EngineError
from topologies.network import check_root

SUMMARY = "summary.json"
DESCRIPTION = """\
What large tables cost. First the program's own share, in CPU time a packet, of the embedded switch's library
form: one exact match, and a router with routes, an access list and next hops. Then packets and P4Runtime
inserts a second on veth cables, beside BMv2 where simple_switch_grpc and p4c-bm2-ss are on PATH (as root, two
cores). docs/performance.md says how to read it."""


@dataclass
class Results:
    """By case; on ports by case and engine."""

    packet_ns: dict[str, list[float]] = field(default_factory=dict)
    inserts_per_s: dict[str, float] = field(default_factory=dict)
    ports: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options:
    """What one `make bench-tables` measures."""

    rounds: int
    seed: int
    ports: bool
    seconds: float
    results: Path


_OPTIONS = (
    Option("ROUNDS", whole(1, 1000), 5, "times that every case has its turn"),
    Option("SEED", whole(0, 2**31), 1, "of the tables and the order of packets"),
    Option("PORTS", yes_or_no, True, "no: only the program's own share, which needs no root"),
    Option("SECONDS", number(0.05, 10), 0.5, "of a run on veth cables"),
    Option("RESULTS", Path, Path("results/bench-tables"), "folder for summary.json"),
)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    program = "python -m experiments.bench_tables"
    return run_command(
        arguments, lambda given: parse_into(Options, _OPTIONS, given, program, DESCRIPTION), _run
    )


def _run(screen: Screen, options: Options) -> int:
    results = Results()
    contents = {case.name: case.make(options.seed) for case in CASES}
    with screen.status("the program's own share") as show:
        _measure_share(contents, options.rounds, results, show)
        if options.ports:
            check_root()
            _measure_ports(contents, options, results, screen, show)
    _print(screen, results)
    path = options.results / SUMMARY
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = {"seed": options.seed, "revision": revision(), "rounds": options.rounds, **asdict(results)}
    path.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    page = _write_page(options, results)
    screen.say(f"Written to {path}; to look at: {page}")
    return 0


def _write_page(options: Options, results: Results) -> Path:
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
    return write_report(options.results, "make bench-tables: what large tables cost", about, sections)


def _measure_share(contents: dict[str, Content], rounds: int, results: Results, show: Any) -> None:
    """All cases are loaded, then they take turns."""
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
    contents: dict[str, Content], options: Options, results: Results, screen: Screen, show: Any
) -> None:
    cores = choose_cpus()
    for case in (case for case in CASES if case.name in ON_PORTS):
        for name in ENGINES:
            try:
                engine = make_engine(name)
            except EngineError as error:
                screen.warn(str(error), f"without {name}")
                continue
            show(f"{case.title}: {name}")
            with contextlib.ExitStack() as stack:
                stack.enter_context(precedence())
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-")))
                own = cores.both if name == Bmv2.name else cores.engine
                router = stack.enter_context(Router(engine, case, contents[case.name], directory, own))
                measured = _on_ports(router, case, contents[case.name], cores.generator, options, directory)
                results.ports.setdefault(case.name, {})[name] = measured


def _on_ports(
    router: Router,
    case: Case,
    content: Content,
    generator: str,
    options: Options,
    directory: Path,
) -> dict[str, Any]:
    work = workload(case, content)
    plan = directory / "frames.plan"
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
