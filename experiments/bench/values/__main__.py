"""make bench WHAT=values: measure the CPU time of a byte of KV by the size of values.

Each round measures every size: the switch and a bare echo of the same frames (hits, misses, merges, PUTs),
and a node and a storage node that move blocks of 256 KiB. The limit is a bare UDP sender and receiver of the
same datagrams.
"""

from __future__ import annotations

import csv
import datetime
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.options import read
from emulator.result import revision
from experiments.bench.values.measure import ECHO, SWITCH, TRAFFIC, UDP, Costs, measure, parts
from experiments.page import Section, lines, write_report
from experiments.pictures import can_draw
from hostlib.protocol.value_size import SIZES
from topologies.machine_check import check_machine

HISTORY: Final = Path(__file__).resolve().parents[3] / "docs" / "values-history.csv"
SIZE_NAMES: Final = tuple(map(str, SIZES))
ENGINES: Final = ("echo", "embedded")


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ValuesOptions:
    """Options of `make bench WHAT=values`, which measures CPU time a byte by the size of values."""

    sizes: tuple[Annotated[str, OneOf(SIZE_NAMES)], ...] = SIZE_NAMES
    """Sizes of values to measure, in bytes."""
    rounds: Annotated[int, Within(1, 100)] = 3
    """Number of rounds; each measures every size."""
    seconds: Annotated[float, Within(0.05, 10)] = 0.5
    """Seconds that a load generator sends in one of its runs."""
    results: Path = Path("results/bench-values")
    """Folder for summary.json."""
    record: bool = False
    """1: append the ratios to docs/values-history.csv."""


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Returns exit code 0 if it measured, 2 if it could not."""
    return run_command(
        arguments,
        lambda given: read(ValuesOptions, given, "weir bench values", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: ValuesOptions) -> int:
    check_machine()
    rounds: dict[int, list[Costs]] = {int(size): [] for size in options.sizes}
    with screen.progress() as progress:
        task = progress.add_task("", total=options.rounds * len(options.sizes))
        for number_of_round in range(options.rounds):
            for size, measured in rounds.items():
                what = f"round {number_of_round + 1} of {options.rounds}: values of {size} bytes"
                progress.update(task, description=what)
                measured.append(measure(size, options.seconds, ENGINES))
                progress.advance(task)
            _write(options, rounds)
    screen.console.print(_table(rounds))
    page = _write_page(options, rounds)
    if can_draw(screen):
        from experiments.bench.values.picture import draw

        screen.say(f"Drawn: {draw(rounds, options.results)}")
    screen.say(f"Written to {options.results / 'summary.json'}; to look at: {page}")
    if options.record:
        screen.say(f"Appended {_record(rounds)} lines to {HISTORY}")
    return 0


def _write(options: ValuesOptions, rounds: Mapping[int, Sequence[Costs]]) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    summary = {
        "revision": revision(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "ns_a_byte": {str(size): list(measured) for size, measured in rounds.items()},
        "ratios": {str(size): ratios(measured) for size, measured in rounds.items() if measured},
    }
    (options.results / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")


def median(measured: Sequence[Costs], part: str) -> float:
    """Return the median over the rounds of a part's CPU time, in nanoseconds a byte."""
    return statistics.median(costs[part] for costs in measured)


def ratios(measured: Sequence[Costs]) -> dict[str, float]:
    """Return the CPU time of the switch over that of the echo, and of hosts over that of bare UDP.

    Ratios are taken within each round, and their medians returned.
    """
    pairs = {f"{SWITCH} / {ECHO}, {what}": (f"{SWITCH}, {what}", f"{ECHO}, {what}") for what in TRAFFIC}
    pairs |= {
        f"node / {UDP}, GET": ("node, GET", f"{UDP}, receiver"),
        f"storage node / {UDP}, GET": ("storage node, GET", f"{UDP}, sender"),
        f"node / {UDP}, PUT": ("node, PUT", f"{UDP}, sender"),
        f"storage node / {UDP}, PUT": ("storage node, PUT", f"{UDP}, receiver"),
    }
    return {
        name: statistics.median(costs[one] / costs[other] for costs in measured)
        for name, (one, other) in pairs.items()
    }


def _table(rounds: Mapping[int, Sequence[Costs]]) -> Table:
    table = Table(title="CPU time a byte of value, ns: median (lowest to highest of the rounds)")
    table.add_column("")
    for size in rounds:
        table.add_column(f"{size:,} bytes", justify="right")
    for part in parts():
        table.add_row(part, *(_cell([costs[part] for costs in measured]) for measured in rounds.values()))
    table.add_section()
    compared = [ratios(measured) for measured in rounds.values()]
    for name in compared[0]:
        table.add_row(name, *(f"{one[name]:.2f}" for one in compared))
    return table


def _cell(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _write_page(options: ValuesOptions, rounds: Mapping[int, Sequence[Costs]]) -> Path:
    rows = [
        [part, *(_cell([costs[part] for costs in measured]) for measured in rounds.values())]
        for part in parts()
    ]
    plot = lines(
        "nanoseconds of CPU a byte",
        "bytes of a value",
        {part: [(size, median(measured, part)) for size, measured in rounds.items()] for part in parts()},
        log_x=True,
    )
    text = "The lines of bare UDP are the limit: what the kernel takes for the same datagrams."
    heads = ["part", *(f"{size:,} bytes" for size in rounds)]
    section = Section("Cost of a byte by the size of values", "values", heads, rows, [plot], text)
    about = {"revision": revision(), "rounds": options.rounds, "seconds": options.seconds}
    return write_report(options.results, "make bench WHAT=values", about, [section])


def _record(rounds: Mapping[int, Sequence[Costs]]) -> int:
    today, of = datetime.datetime.now(tz=datetime.UTC).date().isoformat(), revision()
    lines_of = [
        [today, of, size, name, f"{ratio:.3f}"]
        for size, measured in rounds.items()
        for name, ratio in ratios(measured).items()
    ]
    is_new = not HISTORY.exists()
    with HISTORY.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(["date", "revision", "value_bytes", "ratio", "median"])
        writer.writerows(lines_of)
    return len(lines_of)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
