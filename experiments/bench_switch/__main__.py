"""make bench-switch: packets per second of the engines, in one run, taking turns."""

from __future__ import annotations

import datetime
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from controller.errors import ControllerError
from experiments.bench_switch import history
from experiments.bench_switch.errors import BenchError
from experiments.bench_switch.options import BenchOptions, parse_options
from experiments.bench_switch.report import print_report
from experiments.bench_switch.run import Results, run
from experiments.bench_switch.summary import to_json
from experiments.interrupt import raise_on_signals
from experiments.run.result import revision
from topologies.errors import EngineError, TopologyError
from topologies.network import check_root

SUMMARY = "summary.json"
QUIET_CPU = 0.2
BAD_INPUT = (BenchError, EngineError, TopologyError, ControllerError)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    console = Console()
    raise_on_signals()
    try:
        options = parse_options(arguments)
        check_root()
        with console.status("compiling") as status:
            results = run(options, status.update, lambda results: _write(options, results))
    except BAD_INPUT as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    for name, reason in results.skipped.items():
        console.print(f"[yellow]without {name}:[/] {reason}", highlight=False, soft_wrap=True)
    print_report(console, results.rounds, results.control, results.sink_per_s)
    if results.background_cpu > QUIET_CPU:
        console.print(
            f"[yellow]Other programs used {results.background_cpu:.0%} of the CPU when the run began:[/] "
            "all rates are too low, and BMv2's without loss most of all. Ratios to the echo hardly change."
        )
    console.print(f"Written to {options.results / SUMMARY}")
    if options.record:
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        added = history.record(results.rounds, today, revision())
        console.print(f"Appended {added} lines to {history.HISTORY}")
    return 0


def _write(options: BenchOptions, results: Results) -> None:
    path = options.results / SUMMARY
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = {
        "seed": options.seed,
        "revision": revision(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "versions": results.versions,
        "machine": {"kernel": platform.release(), "cpu": _cpu_model()},
        "background_cpu": results.background_cpu,
        "generator_sink_per_s": results.sink_per_s or None,
        "control": {engine: asdict(figures) for engine, figures in results.control.items()},
        "workloads": to_json(results.rounds),
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    part.replace(path)


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
