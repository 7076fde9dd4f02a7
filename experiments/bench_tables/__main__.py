"""make bench-tables: a router with large tables against one exact match, and against BMv2."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.bench_switch.errors import BenchError
from experiments.bench_switch.measure import Bench
from experiments.bench_switch.plan import encode
from experiments.bench_switch.run import choose_cpus
from experiments.bench_tables.cases import CASES, ON_PORTS, Case
from experiments.bench_tables.entries import Content
from experiments.bench_tables.ports import Router, workload
from experiments.bench_tables.share import Loaded
from experiments.interrupt import raise_on_signals
from experiments.options import yes_or_no
from experiments.precedence import precedence
from experiments.run.result import revision
from topologies.engines import ENGINES, Bmv2, make_engine
from topologies.errors import EngineError, TopologyError
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


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    console = Console()
    raise_on_signals()
    try:
        options = _options(arguments)
        results = Results()
        contents = {case.name: case.make(options.seed) for case in CASES}
        with console.status("the program's own share") as status:
            _measure_share(contents, options.rounds, results, status.update)
            if options.ports:
                check_root()
                _measure_ports(contents, options, results, console, status.update)
    except (BenchError, EngineError, TopologyError) as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    _print(console, results)
    path = Path(options.results) / SUMMARY
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = {"seed": options.seed, "revision": revision(), "rounds": options.rounds, **asdict(results)}
    path.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    console.print(f"Written to {path}")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.bench_tables", description=DESCRIPTION)
    environment = os.environ
    parser.add_argument(
        "--rounds", type=int, default=int(environment.get("ROUNDS") or 5), help="(default: 5)"
    )
    parser.add_argument("--seed", type=int, default=int(environment.get("SEED") or 1), help="(default: 1)")
    parser.add_argument(
        "--ports",
        type=yes_or_no,
        default=yes_or_no(environment.get("PORTS") or "yes"),
        help="no: only the program's own share, which needs no root (default: yes)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=float(environment.get("SECONDS") or 0.5),
        help="of a run (default: 0.5)",
    )
    parser.add_argument(
        "--results",
        default=environment.get("RESULTS") or "results/bench-tables",
        help="folder for summary.json (default: results/bench-tables)",
    )
    return parser.parse_args(arguments)


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
    contents: dict[str, Content], options: argparse.Namespace, results: Results, console: Console, show: Any
) -> None:
    cores = choose_cpus()
    for case in (case for case in CASES if case.name in ON_PORTS):
        for name in ENGINES:
            try:
                engine = make_engine(name)
            except EngineError as error:
                console.print(f"[yellow]without {name}:[/] {error}", highlight=False, soft_wrap=True)
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
    options: argparse.Namespace,
    directory: Path,
) -> dict[str, Any]:
    work = workload(case, content)
    plan = directory / "frames.plan"
    plan.write_bytes(encode(work.make_plan(options.seed)))
    bench = Bench(router, generator, options.seconds, {case.name: plan})
    return {"inserts_per_s": router.inserts_per_s, **asdict(bench.measure(work, lambda _: None))}


def _print(console: Console, results: Results) -> None:
    table = Table(title="The program's own share")
    for heading in ("", "ns a packet", "to one exact match", "inserts /s (library)"):
        table.add_column(heading, justify="left" if not heading else "right")
    medians = {name: statistics.median(values) for name, values in results.packet_ns.items()}
    for case in CASES:
        ratio = f"{medians[case.name] / medians[case.reference]:.2f}" if case.reference else ""
        inserts = f"{results.inserts_per_s[case.name]:,.0f}"
        table.add_row(case.title, f"{medians[case.name]:.0f}", ratio, inserts)
    console.print(table)
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
    console.print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
