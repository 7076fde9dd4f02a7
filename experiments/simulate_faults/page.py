"""results/simulate-faults/report.html."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from emulator.result import revision
from experiments.page import Section, bars, write_report
from experiments.simulate_faults.run import RunOutcome

_TITLES = ("seed", "promises broken", "the first of them", "virtual time, s", "CPU time, s", "trace")


def write_page(folder: Path, operations: int, outcomes: Sequence[RunOutcome]) -> Path:
    """Write the page of what became of operations, and of each run; return its path. In virtual time there is
    no machine that could be too slow."""
    seeds = [outcome.seed for outcome in outcomes]
    about = {
        "seed": f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else seeds[0],
        "revision": revision(),
        "engine": "embedded, in virtual time",
        "operations of each run": operations,
    }
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.counts)
    counted = sorted(counts.items(), key=lambda item: -item[1])
    broken = sum(bool(outcome.violations) for outcome in outcomes)
    text = f"{len(outcomes)} runs, in {broken} of which a promise was broken."
    names = [name.replace("_", " ") for name, _ in counted]
    plots = [bars("how often", names, {"all runs": [count for _, count in counted]})]
    sections = [
        Section(
            "What happened",
            "counts",
            ("what", "how often"),
            list(zip(names, counts_of(counted), strict=True)),
            plots,
            text,
        ),
        Section("Runs", "runs", _TITLES, [_row(outcome) for outcome in outcomes]),
    ]
    return write_report(folder, "make simulate-faults: whole systems in virtual time", about, sections)


def counts_of(counted: Sequence[tuple[str, int]]) -> list[int]:
    """Return the numbers alone."""
    return [count for _, count in counted]


def _row(outcome: RunOutcome) -> list[object]:
    first = outcome.violations[0] if outcome.violations else ""
    return [outcome.seed, len(outcome.violations), first, outcome.virtual_s, outcome.cpu_s, outcome.trace]
