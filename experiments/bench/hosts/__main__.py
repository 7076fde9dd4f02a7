"""make bench WHAT=hosts: measure CPU time and latency of a block at client and storage node.

Blocks go over the loopback interface. Each round runs every combination in turn: GETs or PUTs, the compiled
core or Python alone, and three ways through the kernel. With "together", the kernel takes and delivers
datagrams in batches. With "switched", it delivers them one by one, as behind a switch. With "one by one", it
also takes them one by one, as behind a switch before Linux 6.11. Each run is one
`python -m hostlib.tools.bench`, with a process for each of the two ends.
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
"""Seed of the keys, which are the same in each round."""


OPERATIONS: dict[str, tuple[str, ...]] = {"GET": (), "PUT": ("--put",)}
"""Arguments of hostlib.tools.bench, by what is done with each block."""
CORES = {"python": "1", "compiled": "0"}
"""Value of WEIR_PURE, by core."""
MODES: dict[str, tuple[str, ...]] = {
    "together": (),
    "switched": ("--receive-one-by-one",),
    "one by one": ("--receive-one-by-one", "--send-one-by-one"),
}
"""Arguments of hostlib.tools.bench, by way through the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class HostsOptions:
    """Options of `make bench WHAT=hosts`, which measures what a block costs client and storage node."""

    runs: Annotated[int, Within(2, 100)] = 5
    """Number of rounds."""
    blocks: Annotated[int, Within(1, 1_000_000)] = 4000
    """Number of blocks that are fetched or put in a round."""
    block_bytes: Annotated[int, Within(1, 1 << 20)] = 16384
    """Bytes of a block."""
    chain: Annotated[int, Within(1, 256)] = 16
    """Number of blocks that the client asks for at once."""
    link_mbit_s: Annotated[float, Within(0, 1e6)] = 0.0
    """Link rate in Mbit/s, on which the size of batches of datagrams depends; 0: unlimited."""
    works: tuple[Annotated[str, OneOf(OPERATIONS)], ...] = tuple(OPERATIONS)
    """Work to measure: GET, PUT or both."""
    cores: tuple[Annotated[str, OneOf(CORES)], ...] = tuple(CORES)
    """Implementations of the hosts' core to measure: python, compiled or both."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = tuple(MODES)
    """Ways of datagrams through the kernel to measure."""
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
    """Run the benchmark. Returns exit code 0 if it measured, 2 if it could not."""
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
    """Run one combination; return its figures by the names in `_FIGURES`. Raises ExperimentError."""
    given = {
        "--blocks": options.blocks,
        "--block-bytes": options.block_bytes,
        "--chain": options.chain,
        "--link-mbit-s": options.link_mbit_s,
    }
    arguments = [part for name, value in given.items() for part in (name, str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "hostlib.tools.bench", *arguments, *OPERATIONS[work], *MODES[mode]],
        env={**os.environ, "WEIR_PURE": CORES[core]},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ExperimentError(f"hostlib.tools.bench failed: {done.stderr.strip()[-500:]}")
    figures = json.loads(done.stdout)
    latencies = figures.pop("block_ms")
    figures |= {f"block_{share}_ms": ms for share, ms in latencies.items()}
    return {name: figures[name] for name in _FIGURES}


def write_page(folder: Path, about: dict[str, Any], rounds: Mapping[str, Rounds]) -> Path:
    """Write report.html into `folder`; `rounds` has the figures of each round by combination."""
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
