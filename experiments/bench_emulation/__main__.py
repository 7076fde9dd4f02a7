"""make bench-emulation: the largest load at which this machine keeps up, by size of the network.

For each number of nodes the sigma is searched at which the watch has nothing to complain of, while the next
smaller one overloads the machine; then where the CPU time of a fragment goes, and how far that is from bare
datagrams between two namespaces. Needs root.
"""

from __future__ import annotations

import csv
import datetime
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.bench_emulation.measure import ROLES, Blast, Played, bare_blast, play
from experiments.bench_emulation.search import SearchError, SigmaSearch
from experiments.interrupt import raise_on_signals
from experiments.options import Option, list_of, number, one_of, parse_into, whole, yes_or_no
from experiments.run.__main__ import BAD_INPUT
from experiments.run.options import RunOptions
from experiments.run.options import parse_options as run_options
from experiments.run.result import ROOT, revision
from topologies.network import check_root
from topologies.registry import TOPOLOGIES

LEAST_SIGMA, MOST_SIGMA = 625.0, 160_000.0
"""From 256 fragments a block to one: beyond that a larger sigma makes nothing smaller."""
HISTORY = ROOT / "docs" / "emulation-history.csv"
BLAST_S = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    """What one `make bench-emulation` measures."""

    nodes: tuple[int, ...]
    topology: str
    stores: int
    requests: int
    speed: float
    first: float
    seed: int
    record: bool
    results: Path


_OPTIONS = (
    Option("NODES", list_of(whole(1, 256)), (8, 32, 64, 128), "sizes of the network"),
    Option("TOPO", one_of(tuple(TOPOLOGIES)), "fattree", "topology"),
    Option("STORES", whole(1, 64), 4, "storage nodes"),
    Option("REQUESTS", whole(1, 10_000), 10, "requests a node"),
    Option("SPEED", number(0.01, 1000), 8.0, "trace seconds a second, for 8 nodes; more nodes share them"),
    Option("SCALE", number(LEAST_SIGMA, MOST_SIGMA), 20_000.0, "sigma that the search begins at"),
    Option("SEED", whole(0, 2**31), 1, "of the trace"),
    Option("RECORD", yes_or_no, False, "1: append to docs/emulation-history.csv"),
    Option("RESULTS", Path, Path("results/bench-emulation"), "folder for summary.json"),
)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    console = Console()
    raise_on_signals()
    found: dict[int, Played] = {}
    try:
        program = "python -m experiments.bench_emulation"
        options = parse_into(Options, _OPTIONS, arguments, program, __doc__ or "")
        check_root()
        with console.status("bare datagrams"):
            limit = bare_blast(BLAST_S)
        for nodes in options.nodes:
            found[nodes] = _search(console, options, nodes)
    except BAD_INPUT as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    _print(console, found, limit)
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
    console.print(f"Written to {path}")
    if options.record:
        record(found, limit)
        console.print(f"Appended what kept up to {HISTORY}")
    return 0


def _search(console: Console, options: Options, nodes: int) -> Played:
    # Each node gets as many requests as in a smaller network: the trace is longer, and plays as long.
    arguments = {
        "topo": options.topology, "hosts": nodes, "stores": options.stores, "seed": options.seed,
        "requests": options.requests * nodes,
    }  # fmt: skip
    flags = [part for name, value in arguments.items() for part in (f"--{name}", str(value))]
    run = run_options([*flags, "--speed", str(options.speed * nodes / 8)], "bench-emulation", "")
    with console.status(f"{nodes} nodes") as status:

        def play_at(sigma: float) -> Played:
            status.update(f"{nodes} nodes, sigma {sigma:,.0f}: starting")
            return _play(console, run, sigma, lambda text: status.update(f"{nodes} nodes: {text}"))

        search = SigmaSearch(play_at, lambda one: one.kept_up, LEAST_SIGMA, MOST_SIGMA)
        try:
            return search.run(options.first)[1]
        except SearchError as error:
            console.print(f"[yellow]{nodes} nodes:[/] {error}; the figures are of that play", highlight=False)
            return search.tried[MOST_SIGMA]


def _play(console: Console, run: RunOptions, sigma: float, say: Callable[[str], None]) -> Played:
    played = play(run, sigma, say)
    said = "keeps up" if played.kept_up else "; ".join(played.complaints)
    console.print(
        f"{run.hosts} nodes, sigma {sigma:,.0f}: {played.fragments_per_s:,.0f} fragments/s, "
        f"CPU {played.cpu_share:.0%}, started in {played.start_s:.0f} s: {said}",
        highlight=False,
    )
    return played


def _print(console: Console, found: dict[int, Played], limit: Blast) -> None:
    table = Table("nodes", "sigma", "fragments/s", "CPU", "of bare datagrams", "start, s")
    for nodes, played in found.items():
        sigma = f"{played.sigma:,.0f}" if played.kept_up else "overloaded"
        share = f"{played.fragments_per_s / limit.datagrams_per_s:.1%}"
        table.add_row(
            str(nodes), sigma, f"{played.fragments_per_s:,.0f}", f"{played.cpu_share:.0%}",
            share, f"{played.start_s:.0f}",
        )  # fmt: skip
    console.print(table)
    table = Table("nodes", *(f"{role}, µs" for role in ROLES), "of that kernel", "together")
    for nodes, played in found.items():
        cells = [f"{played.program_us[role] + played.kernel_us[role]:.1f}" for role in ROLES]
        table.add_row(str(nodes), *cells, f"{sum(played.kernel_us.values()):.1f}", f"{played.total_us:.1f}")
    console.print(table)
    console.print(
        f"Bare datagrams: {limit.datagrams_per_s:,.0f}/s, {limit.cpu_us:.2f} µs of CPU each.", highlight=False
    )


def record(found: dict[int, Played], limit: Blast, path: Path = HISTORY) -> None:
    """Append one line a size."""
    columns = ["date", "revision", "nodes", "sigma", "fragments_per_s", "cpu_share", "of_blast", "start_s"]
    columns += [f"{role}_{where}_us" for role in ROLES for where in ("program", "kernel")]
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(columns)
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        for nodes, played in found.items():
            if not played.kept_up:
                continue
            row = [today, revision(), nodes, round(played.sigma), played.fragments_per_s, played.cpu_share]
            row += [f"{played.fragments_per_s / limit.datagrams_per_s:.4f}", played.start_s]
            row += [us for role in ROLES for us in (played.program_us[role], played.kernel_us[role])]
            writer.writerow(row)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
