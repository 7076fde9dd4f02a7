"""make bench WHAT=emulation: find the largest load at which this machine keeps up, by size of the network.

For each number of nodes, the benchmark searches the smallest sigma at which the machine is not overloaded.
If it is overloaded at every sigma, the search begins anew at half the requests a second. The benchmark also
shows which processes use the CPU time of a fragment, and compares the rate with that of bare datagrams
between two namespaces. Needs root.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from emulator.options import RunOptions
from emulator.options import parse_options as run_options
from emulator.result import ROOT, revision
from experiments.bench.emulation.measure import ROLES, Blast, Measured, bare_blast, play
from experiments.bench.emulation.search import SearchError, SigmaSearch
from experiments.logs import Open, OpenNetworks
from experiments.page import Section, bars, write_report
from topologies.machine_check import check_machine
from topologies.registry import TOPOLOGIES

LEAST_SIGMA, MOST_SIGMA = 625.0, 160_000.0
"""Smallest and largest sigma tried: a block has 256 fragments at the one, one fragment at the other."""
REFERENCE_NODES = 32
HISTORY = ROOT / "docs" / "emulation-history.csv"
BLAST_S = 2.0
SLOWER = 5
"""Number of times that the request rate is halved if the machine is overloaded at every sigma.

Keys, look-ups and timers cost as much for a block of one fragment as for a large one.
"""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class EmulationOptions:
    """Options of `make bench WHAT=emulation`, which finds the largest load that this machine carries."""

    nodes: tuple[Annotated[int, Within(1, 256)], ...] = (8, 32, 64, 128)
    """Numbers of nodes to measure."""
    topology: Annotated[str, OneOf(TOPOLOGIES), Variable("TOPO")] = "fattree"
    """Topology."""
    stores: Annotated[int, Within(1, 64)] = 4
    """Number of storage nodes."""
    requests: Annotated[int, Within(1, 10_000)] = 10
    """Number of requests per node."""
    speed: Annotated[float, Within(0.01, 1000)] = 8.0
    """Trace seconds per second with 8 nodes; with other numbers of nodes in proportion."""
    first: Annotated[float, Within(LEAST_SIGMA, MOST_SIGMA), Variable("SCALE")] = 20_000.0
    """Sigma at which the search begins with 32 nodes; with other numbers in proportion."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the trace."""
    minutes: Annotated[float, Within(0, 10_000)] = 0.0
    """Time limit in minutes: a search that used its share ends once a sigma keeps up; 0: no limit."""
    record: bool = False
    """1: append to docs/emulation-history.csv."""
    results: Path = Path("results/bench-emulation")
    """Folder for summary.json."""


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Returns exit code 0 if it measured, 2 if it could not."""
    program = "weir bench emulation"
    return run_command(arguments, lambda given: read(EmulationOptions, given, program, __doc__ or ""), _run)


def _run(screen: Screen, options: EmulationOptions) -> int:
    check_machine()
    with screen.status("bare datagrams"):
        limit = bare_blast(BLAST_S)
    found: dict[int, Measured] = {}
    opened = OpenNetworks(screen, options.results, {"revision": revision(), "seed": options.seed})
    ends_s = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    for nodes in options.nodes:
        left_s = ends_s - time.monotonic()
        found[nodes] = _search(screen, opened, options, nodes, left_s / (len(options.nodes) - len(found)))
    _print(screen, found, limit)
    path = options.results / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "seed": options.seed,
        "topology": options.topology,
        "revision": revision(),
        "blast": asdict(limit),
    }
    sizes = {str(nodes): asdict(played) for nodes, played in found.items()}
    path.write_text(json.dumps({**about, "sizes": sizes}, indent=1) + "\n")
    page = _write_page(options, found, limit)
    screen.say(f"Written to {path}; to look at: {page}")
    if options.record:
        recorded_sizes = record(found, limit)
        screen.say(f"{recorded_sizes} of {len(found)} sizes kept up and were appended to {HISTORY}")
    return 0


def _search(screen: Screen, opened: Open, options: EmulationOptions, nodes: int, share_s: float) -> Measured:
    began_s = time.monotonic()
    plays = 0

    def in_time() -> bool:
        """Return whether another run of the mean length so far would end within this size's share of time."""
        took_s = time.monotonic() - began_s
        return took_s * (plays + 1) / plays <= share_s

    # Each node gets as many requests as in a smaller network: the trace has more requests and takes as long.
    arguments = {
        "topo": options.topology, "hosts": nodes, "stores": options.stores, "seed": options.seed,
        "requests": options.requests * nodes,
    }  # fmt: skip
    flags = [part for name, value in arguments.items() for part in (f"--{name}", str(value))]
    with screen.status(f"{nodes} nodes") as show:

        def play_at(run: RunOptions, sigma: float) -> Measured:
            nonlocal plays
            plays += 1
            show(f"{nodes} nodes, sigma {sigma:,.0f}: starting")
            return _play(screen, opened, run, sigma, lambda text: show(f"{nodes} nodes: {text}"))

        first = min(MOST_SIGMA, max(LEAST_SIGMA, options.first * nodes / REFERENCE_NODES))
        for halvings in range(SLOWER + 1):
            speed = options.speed * nodes / 8 / 2**halvings
            run = run_options([*flags, "--speed", str(speed)], "bench-emulation", "")
            search = SigmaSearch(
                partial(play_at, run), lambda one: one.kept_up, LEAST_SIGMA, MOST_SIGMA, in_time
            )
            try:
                return search.run(first)[1]
            except SearchError as error:
                slower = ": half as many requests a second" if halvings < SLOWER else ""
                screen.warn(f"{error}{slower}", f"{nodes} nodes")
        return search.tried[MOST_SIGMA]


def _play(
    screen: Screen, opened: Open, run: RunOptions, sigma: float, say: Callable[[str], None]
) -> Measured:
    played = play(run, sigma, say, opened)
    verdict = "keeps up" if played.kept_up else "; ".join(played.complaints)
    screen.say(
        f"{run.nodes.count} nodes, sigma {sigma:,.0f}: {played.requests_per_s:,.0f} requests/s, "
        f"{played.fragments_per_s:,.0f} fragments/s, "
        f"CPU {played.cpu_share:.0%}, started in {played.start_s:.0f} s: {verdict}"
    )
    return played


def _write_page(options: EmulationOptions, found: dict[int, Measured], limit: Blast) -> Path:
    labels = [f"{nodes} nodes" for nodes in found]
    cost = {role: [p.program_us[role] + p.kernel_us[role] for p in found.values()] for role in ROLES}
    rates = {"fragments/s": [p.fragments_per_s for p in found.values()]}
    titles = [
        "nodes",
        "sigma",
        "requests/s",
        "fragments/s",
        "CPU, %",
        "start, s",
        *(f"{role}, µs" for role in ROLES),
        "kept up",
    ]
    rows = [
        [
            nodes, p.sigma, p.requests_per_s, p.fragments_per_s, 100 * p.cpu_share, p.start_s,
            *(p.program_us[role] + p.kernel_us[role] for role in ROLES), "yes" if p.kept_up else "no",
        ]
        for nodes, p in found.items()
    ]  # fmt: skip
    plots = [
        bars("CPU time a fragment, µs", labels, cost, stacked=True),
        bars("fragments a second", labels, rates),
    ]
    text = f"Bare datagrams: {limit.datagrams_per_s:,.0f}/s, {limit.cpu_us:.2f} µs of CPU each."
    section = Section("The largest load that this machine keeps up with", "sizes", titles, rows, plots, text)
    about = {
        "seed": options.seed, "revision": revision(), "engine": "embedded", "topology": options.topology,
        "storage nodes": options.stores,
    }  # fmt: skip
    complaints = [text for p in found.values() for text in p.complaints]
    return write_report(options.results, "make bench WHAT=emulation", about, [section], complaints)


def _print(screen: Screen, found: dict[int, Measured], limit: Blast) -> None:
    table = Table("nodes", "sigma", "requests/s", "fragments/s", "CPU", "of bare datagrams", "start, s")
    for nodes, played in found.items():
        sigma = f"{played.sigma:,.0f}" if played.kept_up else "overloaded"
        share = f"{played.fragments_per_s / limit.datagrams_per_s:.1%}"
        table.add_row(
            str(nodes), sigma, f"{played.requests_per_s:,.1f}", f"{played.fragments_per_s:,.0f}",
            f"{played.cpu_share:.0%}",
            share, f"{played.start_s:.0f}",
        )  # fmt: skip
    screen.show(table)
    table = Table("nodes", *(f"{role}, µs" for role in ROLES), "of that kernel", "together")
    for nodes, played in found.items():
        cells = [f"{played.program_us[role] + played.kernel_us[role]:.1f}" for role in ROLES]
        table.add_row(str(nodes), *cells, f"{sum(played.kernel_us.values()):.1f}", f"{played.total_us:.1f}")
    screen.show(table)
    screen.show(f"Bare datagrams: {limit.datagrams_per_s:,.0f}/s, {limit.cpu_us:.2f} µs of CPU each.")


def record(found: dict[int, Measured], limit: Blast, path: Path = HISTORY) -> int:
    """Append a line to `path` for each size that kept up; returns the number of lines."""
    kept_up = {nodes: played for nodes, played in found.items() if played.kept_up}
    if not kept_up:
        return 0
    columns = ["date", "revision", "nodes", "sigma", "fragments_per_s", "cpu_share", "of_blast", "start_s"]
    columns += [f"{role}_{where}_us" for role in ROLES for where in ("program", "kernel")]
    columns.append("requests_per_s")
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(columns)
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        for nodes, played in kept_up.items():
            row = [today, revision(), nodes, round(played.sigma), played.fragments_per_s, played.cpu_share]
            row += [f"{played.fragments_per_s / limit.datagrams_per_s:.4f}", played.start_s]
            row += [us for role in ROLES for us in (played.program_us[role], played.kernel_us[role])]
            row.append(played.requests_per_s)
            writer.writerow(row)
    return len(kept_up)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
