"""make bench WHAT=hosts: CPU time and latency of a block, fetched or put, at client and storage node, over
the loopback interface.

Each round plays every combination in turn: GETs and PUTs; the compiled core and Python alone; datagrams
that the kernel takes and gives together, that it gives one by one as behind a switch ("switched"), and that
it takes one by one, too, as there before Linux 6.11. Each play is one `python -m hostlib.tools.bench`, so
that the two ends are processes of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.errors import ExperimentError
from commands.intervals import mean_interval
from commands.options import read
from emulator.result import revision
from experiments.page import Section, bars, write_report
from hostlib import native

Rounds = list[dict[str, float]]
SEED = 0
"""Of the keys, which are the same in each round."""


WORKS: dict[str, tuple[str, ...]] = {"GET": (), "PUT": ("--put",)}
"""Arguments of hostlib.tools.bench for each."""
CORES = {"python": "1", "compiled": "0"}
"""WEIR_PURE for each."""
MODES: dict[str, tuple[str, ...]] = {
    "together": (),
    "switched": ("--receive-one-by-one",),
    "one by one": ("--receive-one-by-one", "--send-one-by-one"),
}
"""Arguments of hostlib.tools.bench for each."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class HostsOptions:
    """In the order of `_OPTIONS`."""

    runs: Annotated[int, Within(2, 100)] = 5
    """Rounds."""
    blocks: Annotated[int, Within(1, 1_000_000)] = 4000
    """Blocks fetched or put in a round."""
    block_bytes: Annotated[int, Within(1, 1 << 20)] = 16384
    """Bytes of a block."""
    chain: Annotated[int, Within(1, 256)] = 16
    """Blocks asked for at once."""
    link_mbit_s: Annotated[float, Within(0, 1e6)] = 0.0
    """Lumps of datagrams as on a link of this rate; 0: unlimited."""
    works: tuple[Annotated[str, OneOf(WORKS)], ...] = tuple(WORKS)
    """GET, PUT or both."""
    cores: tuple[Annotated[str, OneOf(CORES)], ...] = tuple(CORES)
    """Python, compiled or both."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = tuple(MODES)
    """How datagrams pass through the kernel."""
    results: Path = Path("results/bench-hosts")
    """Folder for summary.json."""


_FIGURES = {
    "client_us_per_fragment": "client, µs a fragment",
    "client_kernel_us_per_fragment": "client, in the kernel",
    "storage_us_per_fragment": "store, µs a fragment",
    "storage_kernel_us_per_fragment": "store, in the kernel",
    "block_p50_ms": "block, p50, ms",
    "block_p99_ms": "block, p99, ms",
    "blocks_per_s": "blocks/s",
    "fragments_per_s": "fragments/s",
    "retransmits": "asked again",
}


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    program = "weir bench hosts"
    return run_command(arguments, lambda given: read(HostsOptions, given, program, __doc__ or ""), _run)


def _run(screen: Screen, options: HostsOptions) -> int:
    if "compiled" in options.cores and not native.core().is_compiled:
        raise ExperimentError("there is no compiled core: run `make setup`, or give CORES=python")
    plays = list(product(options.works, options.modes, options.cores))
    rounds: dict[str, Rounds] = {name_of(*play): [] for play in plays}
    with screen.status("measuring") as show:
        for number in range(1, options.runs + 1):
            for play in plays[::-1] if number % 2 else plays:
                show(f"round {number} of {options.runs}: {name_of(*play)}")
                rounds[name_of(*play)].append(measure(options, *play))
    table = Table(f"mean of {options.runs} rounds, ± 95 %", *rounds)
    for name, title in _FIGURES.items():
        means = [mean_interval([one[name] for one in measured]) for measured in rounds.values()]
        table.add_row(title, *(f"{of:,.2f}" for of in means))
    screen.show(table)
    path = options.results / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**_about(options), "rounds": rounds}, indent=1) + "\n")
    screen.say(f"Written to {path}; to look at: {write_page(options.results, _about(options), rounds)}")
    return 0


def name_of(work: str, mode: str, core: str) -> str:
    """Return the name of one combination."""
    return f"{work} {mode}, {core}"


def measure(options: HostsOptions, work: str, mode: str, core: str) -> dict[str, float]:
    """Run one combination, and return its figures."""
    given = {
        "--blocks": options.blocks,
        "--block-bytes": options.block_bytes,
        "--chain": options.chain,
        "--link-mbit-s": options.link_mbit_s,
    }
    arguments = [part for name, value in given.items() for part in (name, str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "hostlib.tools.bench", *arguments, *WORKS[work], *MODES[mode]],
        env={**os.environ, "WEIR_PURE": CORES[core]},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ExperimentError(f"hostlib.tools.bench failed: {done.stderr.strip()[-500:]}")
    said = json.loads(done.stdout)
    latencies = said.pop("block_ms")
    said |= {f"block_{share}_ms": ms for share, ms in latencies.items()}
    return {name: said[name] for name in _FIGURES}


def write_page(folder: Path, about: dict[str, Any], rounds: Mapping[str, Rounds]) -> Path:
    """results/bench-hosts/report.html; `rounds` by combination."""
    rows = [
        [play, number, *one.values()]
        for play, measured in rounds.items()
        for number, one in enumerate(measured, 1)
    ]
    mean = {
        name: [sum(one[name] for one in measured) / len(measured) for measured in rounds.values()]
        for name in _FIGURES
    }
    labels = list(rounds)
    ends = {
        "client": mean["client_us_per_fragment"],
        "storage node": mean["storage_us_per_fragment"],
    }
    blocks = {share: mean[f"block_{share}_ms"] for share in ("p50", "p99")}
    plots = [
        bars("CPU time a fragment, µs", labels, ends, stacked=True),
        bars("GET or PUT of a block, ms", labels, blocks),
    ]
    titles = ["work, datagrams, core", "round", *_FIGURES.values()]
    section = Section("Rounds", "rounds", titles, rows, plots)
    return write_report(folder, "make bench WHAT=hosts: what a block costs its two ends", about, [section])


def _about(options: HostsOptions) -> dict[str, Any]:
    return {
        "seed": SEED,
        "revision": revision(),
        "engine": "none: client and storage node on the loopback interface",
        "blocks": options.blocks,
        "block_bytes": options.block_bytes,
        "chain": options.chain,
        "link_mbit_s": options.link_mbit_s,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
