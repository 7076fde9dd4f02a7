"""make bench WHAT=switch: measure packets per second of the engines, which take turns in one run."""

from __future__ import annotations

import datetime
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from commands.command import Screen, run_command
from emulator.result import revision
from experiments.bench.switch import history
from experiments.bench.switch.options import BenchOptions, parse_options
from experiments.bench.switch.page import write_page
from experiments.bench.switch.report import print_report
from experiments.bench.switch.run import Results, run
from experiments.bench.switch.summary import to_json
from topologies.machine_check import check_machine

SUMMARY = "summary.json"
QUIET_CPU = 0.2


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Returns exit code 0 if it measured, 2 if it could not."""
    return run_command(arguments, parse_options, _run)


def _run(screen: Screen, options: BenchOptions) -> int:
    check_machine()
    with screen.status("compiling") as show:
        results = run(options, show, lambda results: _write(options, results))
    for name, reason in results.skipped.items():
        screen.warn(reason, f"without {name}")
    print_report(screen.console, results.rounds, results.control, results.sink_per_s)
    if results.background_cpu > QUIET_CPU:
        screen.warn(
            f"other programs used {results.background_cpu:.0%} of the CPU when the run began: "
            "all rates are too low, and BMv2's without loss most of all. Ratios to the echo hardly change."
        )
    about = {
        "seed": options.seed, "revision": revision(), "engine": list(results.versions),
        "rounds": options.rounds, "seconds": options.seconds, "CPU": _cpu_model(),
        "share of the CPU that other programs used": results.background_cpu,
    }  # fmt: skip
    page = write_page(options.results, about, results.rounds)
    screen.say(f"Written to {options.results / SUMMARY}; to look at: {page}")
    if options.record:
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        added = history.record(results.rounds, today, revision())
        screen.say(f"Appended {added} lines to {history.HISTORY}")
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
