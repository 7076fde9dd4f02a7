"""make bench WHAT=control: CPU time that a digest costs, from the switch to the entry that it leads to.

Values of unknown blocks pass a switch in bursts, with its reports off and on in turn; the difference is what
controller and switch spend on digests, decisions and entries. ENTRIES=25 measures instead how soon entries
follow a list of digests, so many times for each of some lengths of lists. Needs root and a C compiler.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import linear_regression, mean
from typing import Annotated

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.options import read
from controller.policies import POLICY_NAMES
from emulator.result import revision
from experiments.bench.control.measure import Bench, Bursts, Cost
from experiments.page import Section, bars, write_report
from topologies.machine_check import check_machine

GOAL_US = 150.0
LISTS = (1, 8, 24, 64, 100)
"""Digests in the lists whose entries are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ControlOptions:
    """What one `make bench WHAT=control` measures."""

    runs: Annotated[int, Within(1, 100)] = 3
    """Rounds, each with reports off and on."""
    policy: Annotated[str, OneOf(POLICY_NAMES)] = "lru"
    """The controller's policy."""
    blocks: Annotated[int, Within(100, 100_000)] = 2000
    """Blocks that pass in a round, each once."""
    burst: Annotated[int, Within(1, 1000)] = 20
    """Blocks in a burst."""
    bursts_per_s: Annotated[float, Within(0.1, 1000)] = 20.0
    """Bursts a second."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of the blocks' keys."""
    entries: Annotated[int, Within(0, 1000)] = 0
    """Lists of each length whose entries are waited for; 0: CPU time."""
    results: Path = Path("results/bench-control")
    """Folder for summary.json."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: measured; 2: it could not."""
    program = "weir bench control"
    return run_command(arguments, lambda given: read(ControlOptions, given, program, __doc__ or ""), _run)


def _run(screen: Screen, options: ControlOptions) -> int:
    check_machine()
    if options.entries:
        return _wait_for_entries(screen, options)
    costs = _measure(screen, options)
    _print(screen, costs)
    path = options.results / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {**asdict(options), "results": str(options.results), "revision": revision()}
    path.write_text(json.dumps({**about, "rounds": [asdict(cost) for cost in costs]}, indent=1) + "\n")
    page = _write_page(options, costs)
    screen.say(f"Written to {path}; to look at: {page}")
    return 0


def _wait_for_entries(screen: Screen, options: ControlOptions) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as directory,
        screen.status("lists of digests and their entries"),
        Bench(Path(directory), options.policy, options.entries * sum(LISTS)) as bench,
    ):
        found = bench.entries(options.entries, LISTS)
    table = Table("digests in a list", "first entry after, ms", "last entry after, ms")
    for each in found:
        table.add_row(f"{each.digests}", f"{each.first_ms:.2f}", f"{each.last_ms:.2f}")
    screen.show(table)
    line = linear_regression([each.digests for each in found], [each.last_ms for each in found])
    screen.show(f"Least squares: {line.intercept:.2f} ms, and {1000 * line.slope:.0f} µs for each digest.")
    path = options.results / "entries.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"rounds": options.entries, "policy": options.policy, "revision": revision()}
    path.write_text(json.dumps({**about, "lists": [asdict(each) for each in found]}, indent=1) + "\n")
    screen.say(f"Written to {path}")
    return 0


def _measure(screen: Screen, options: ControlOptions) -> list[Cost]:
    costs = []
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as directory,
        screen.status("compiling the P4 program") as show,
        Bench(Path(directory), options.policy) as bench,
    ):
        for run in range(options.runs):
            show(f"round {run + 1} of {options.runs}")
            costs.append(
                bench.round(Bursts(options.blocks, options.burst, options.bursts_per_s, options.seed + run))
            )
    return costs


def _write_page(options: ControlOptions, costs: list[Cost]) -> Path:
    rounds = [f"round {number}" for number in range(1, len(costs) + 1)]
    series = {"controller": [c.controller_us for c in costs], "switch": [c.switch_us for c in costs]}
    titles = ["round", "digests", "Writes", "updates", "controller, µs", "switch, µs", "together, µs"]
    rows = [
        [name, c.digests, c.writes, c.updates, c.controller_us, c.switch_us, c.total_us]
        for name, c in zip(rounds, costs, strict=True)
    ]
    plots = [bars("CPU time a digest, µs", rounds, series, stacked=True)]
    section = Section("CPU time a digest", "digests", titles, rows, plots)
    about = {
        "seed": options.seed, "revision": revision(), "engine": "embedded", "policy": options.policy,
        "blocks": options.blocks, "blocks a burst": options.burst, "bursts a second": options.bursts_per_s,
    }  # fmt: skip
    return write_report(options.results, "make bench WHAT=control: what a digest costs", about, [section])


def _print(screen: Screen, costs: list[Cost]) -> None:
    table = Table("CPU time a digest, µs", "mean", "least", "most")
    for title, values in (
        ("controller", [cost.controller_us for cost in costs]),
        ("switch", [cost.switch_us for cost in costs]),
        ("together", [cost.total_us for cost in costs]),
    ):
        table.add_row(title, f"{mean(values):.0f}", f"{min(values):.0f}", f"{max(values):.0f}")
    screen.show(table)
    digests, writes = sum(cost.digests for cost in costs), sum(cost.writes for cost in costs)
    updates = sum(cost.updates for cost in costs)
    screen.show(
        f"{digests / writes:.1f} digests and {updates / writes:.1f} updates a Write. "
        f"Goal: {GOAL_US:g} µs together."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
