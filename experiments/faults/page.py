"""Page of the experiment: results/faults/report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.faults.cases import CASES
from experiments.faults.result import PHASES, Result
from experiments.page import Section, bars, write_report


def write_page(
    folder: Path, about: Mapping[str, object], results: Sequence[Result], complaints: Sequence[str]
) -> Path:
    """Write the page into `folder`, with a section for each topology; returns its path."""
    titles = (
        "fault", "operations", "failed", "refused", "wrong blocks", "lost blocks", "recover, s",
        *(f"p99 {phase}, ms" for phase in PHASES), "slowest, ms", "CPU, %", "promises",
    )  # fmt: skip
    sections = []
    for topology in dict.fromkeys(one.topology for one in results):
        some = [one for one in results if one.topology == topology]
        names = [one.fault for one in some]
        p99 = {phase: [one.p99_ms[phase] for one in some] for phase in PHASES}
        plots = [
            bars("p99 of an operation, ms", names, p99),
            bars(
                "from the end of the fault to the last disturbed operation, s",
                names,
                {"s": [o.recover_s for o in some]},
            ),
        ]
        rows = [_row(one) for one in some]
        sections.append(Section(f"Topology: {topology}", topology, titles, rows, plots))
    return write_report(folder, "make faults: parts that fail under load", about, sections, complaints)


def _row(one: Result) -> list[object]:
    case = CASES[one.fault]
    counts = (one.operations, one.failed, one.refused, one.wrong_blocks, one.lost_blocks, one.recover_s)
    times = (*(one.p99_ms[phase] for phase in PHASES), one.slowest_ms, 100 * one.cpu)
    promises = "; ".join(one.missed(case.may_fail, case.may_refuse)) or "kept"
    return [case.title, *counts, *times, promises]
