"""make bench-hosts: CPU time and latency of a block at client and storage node, over the loopback interface.

Each round is one `python -m hostlib.bench`, so that the two ends are processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from experiments.command import Screen, run_command
from experiments.errors import ExperimentError
from experiments.intervals import mean_interval
from experiments.options import Option, parse_into, whole
from experiments.page import Section, bars, write_report
from experiments.run.result import revision

SEED = 0
"""Of the keys, which are the same in each round."""


@dataclass(frozen=True, slots=True)
class Options:
    """In the order of `_OPTIONS`."""

    runs: int
    blocks: int
    block_bytes: int
    chain: int
    results: Path


_OPTIONS = (
    Option("RUNS", whole(2, 100), 5, "rounds"),
    Option("BLOCKS", whole(1, 1_000_000), 4000, "blocks fetched in a round"),
    Option("BLOCK_BYTES", whole(1, 1 << 20), 16384, "bytes of a block"),
    Option("CHAIN", whole(1, 256), 16, "blocks asked for at once"),
    Option("RESULTS", Path, Path("results/bench-hosts"), "folder for summary.json"),
)
_FIGURES = {
    "client_us_per_fragment": "client, CPU µs a fragment",
    "storage_us_per_fragment": "storage node, CPU µs a fragment",
    "get_p50_ms": "GET of a block, p50, ms",
    "get_p99_ms": "GET of a block, p99, ms",
    "blocks_per_s": "blocks/s",
    "fragments_per_s": "fragments/s",
    "retransmits": "asked again",
}


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    program = "python -m experiments.bench_hosts"
    return run_command(
        arguments, lambda given: parse_into(Options, _OPTIONS, given, program, __doc__ or ""), _run
    )


def _run(screen: Screen, options: Options) -> int:
    rounds = []
    with screen.status("measuring") as show:
        for number in range(1, options.runs + 1):
            show(f"round {number} of {options.runs}")
            rounds.append(measure(options))
    table = Table("", f"mean of {len(rounds)} rounds", "± (95 %)", "least", "most")
    for name, title in _FIGURES.items():
        values = [one[name] for one in rounds]
        of = mean_interval(values)
        shown = (f"{value:,.2f}" for value in (of.mean, of.half, min(values), max(values)))
        table.add_row(title, *shown)
    screen.show(table)
    path = options.results / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**_about(options), "rounds": rounds}, indent=1) + "\n")
    screen.say(f"Written to {path}; to look at: {write_page(options.results, _about(options), rounds)}")
    return 0


def measure(options: Options) -> dict[str, float]:
    """One round."""
    given = {"--blocks": options.blocks, "--block-bytes": options.block_bytes, "--chain": options.chain}
    arguments = [part for name, value in given.items() for part in (name, str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "hostlib.bench", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ExperimentError(f"hostlib.bench failed: {done.stderr.strip()[-500:]}")
    said = json.loads(done.stdout)
    latencies = said.pop("get_ms")
    said |= {f"get_{share}_ms": ms for share, ms in latencies.items()}
    return {name: said[name] for name in _FIGURES}


def write_page(folder: Path, about: dict[str, Any], rounds: Sequence[dict[str, float]]) -> Path:
    """results/bench-hosts/report.html."""
    labels = [f"round {number}" for number in range(1, len(rounds) + 1)]
    rows = [[label, *one.values()] for label, one in zip(labels, rounds, strict=True)]
    ends = {
        "client": [one["client_us_per_fragment"] for one in rounds],
        "storage node": [one["storage_us_per_fragment"] for one in rounds],
    }
    gets = {share: [one[f"get_{share}_ms"] for one in rounds] for share in ("p50", "p99")}
    plots = [
        bars("CPU time a fragment, µs", labels, ends, stacked=True),
        bars("GET of a block, ms", labels, gets),
    ]
    section = Section("Rounds", "rounds", ["round", *_FIGURES.values()], rows, plots)
    return write_report(folder, "make bench-hosts: what a block costs its two ends", about, [section])


def _about(options: Options) -> dict[str, Any]:
    return {
        "seed": SEED,
        "revision": revision(),
        "engine": "none: client and storage node on the loopback interface",
        "blocks": options.blocks,
        "block_bytes": options.block_bytes,
        "chain": options.chain,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
