"""Results of `make validate`: the tables as Markdown, and every row in `summary.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.machine import advice
from emulator.result import revision
from experiments.validate.calibrate import TYPICAL_LIST
from experiments.validate.emulator import Comparison
from experiments.validate.rows import Row, figure, markdown


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    title: str
    source: str | None
    """Source of the published figures; None if they are the emulator's."""
    rows: tuple[Row, ...]
    text: str
    complaints: tuple[str, ...] = ()
    """Reasons why the emulator's figures don't count."""


def emulated_section(comparison: Comparison) -> Section:
    """Return the section of one scenario on the emulator and in the simulator."""
    text = markdown(comparison.rows, "emulator")
    if comparison.emulated.overloaded:
        complaints = "; ".join(comparison.emulated.complaints)
        verdict = "**The machine did not keep up, so the emulator's figures don't count**"
        text = f"{text}\n{verdict} ({complaints}). {advice()}\n"
    if comparison.emulated.drifted:
        times = f"{1 + comparison.emulated.drift:.2f} times as long"
        text += f"\n**The machine drifted**: after the play it took {times} as before.\n"
    reasons = tuple(f"{comparison.name}: {complaint}" for complaint in comparison.emulated.complaints)
    return Section(f"Against the emulator: {comparison.name}", None, comparison.rows, text, reasons)


def drawn_table(comparisons: Sequence[Comparison]) -> str:
    """Return the table of how many drawn scenarios agree in each figure, and in all of them.

    A scenario counts if the machine kept up in both of its plays. If both found no block in a tier, the tier
    does not count.
    """
    scenarios: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        scenarios.setdefault(comparison.scenario, []).append(comparison)
    counted = [plays for plays in scenarios.values() if not any(play.emulated.overloaded for play in plays)]
    judged: dict[str, dict[bool, list[bool]]] = {}
    for play in (play for plays in counted for play in plays):
        for row in play.rows:
            if row.agrees is not None and (row.reference or row.simulated):
                judged.setdefault(row.figure, {False: [], True: []})[play.pool].append(row.agrees)
    lines = ["| figure | agrees without the pool | with the pool |", "|---|---:|---:|"]
    lines += [
        f"| {what} | {_of(verdicts[False])} | {_of(verdicts[True])} |" for what, verdicts in judged.items()
    ]
    whole = {
        pool: [_agrees(play) for plays in counted for play in plays if play.pool == pool]
        for pool in (False, True)
    }
    both = sum(all(map(_agrees, plays)) for plays in counted)
    lines += [
        f"| all of them | {_of(whole[False])} | {_of(whole[True])} |",
        "",
        f"All figures agree in {both} of {len(counted)} scenarios, without the pool and with it; in "
        f"{len(scenarios) - len(counted)} more the machine did not keep up, and they don't count. A tier in "
        "which both found nothing is not counted.",
        "",
        "| scenario | does not agree |",
        "|---|---|",
        *(f"| {name} | {'; '.join(_differs(plays)) or '-'} |" for name, plays in scenarios.items()),
        "",
        *_machines(comparisons),
    ]
    return "\n".join(lines) + "\n"


def _machines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield the table of the machine's speed during each play, as measured before and after."""
    entries_of = f"entries after a list of {TYPICAL_LIST}, ms"
    yield f"| play | hosts take | longer after rests, ms: hosts, switch | {entries_of} | |"
    yield "|---|---:|---:|---:|---|"
    for play in comparisons:
        readings = play.emulated.readings
        if readings:
            slower = ", ".join(f"{each.slower:.2f}" for each in readings)
            rested = ", ".join(
                f"{1000 * each.get_rest_s:.2f} + {1000 * each.switch_rest_s:.2f}" for each in readings
            )
            entries = ", ".join(f"{1000 * each.entries_after_s(TYPICAL_LIST):.1f}" for each in readings)
            drifted = f"**drifted by {play.emulated.drift:+.0%}**" if play.emulated.drifted else "the same"
            yield f"| {play.name} | {slower} times as long | {rested} | {entries} | {drifted} |"
        else:
            yield f"| {play.name} | not measured: the usual costs | | | |"


def _agrees(play: Comparison) -> bool:
    return all(row.agrees is not False for row in play.rows)


def _of(verdicts: Sequence[bool]) -> str:
    return f"{sum(verdicts)} of {len(verdicts)}" if verdicts else "-"


def _differs(plays: Sequence[Comparison]) -> list[str]:
    """Return the figures that are beyond their tolerance, in words."""
    return [
        f"{row.figure} {'with' if play.pool else 'without'} {row.deviation:+.0%}"
        f" ({figure(row.reference)}, {figure(row.simulated)})"
        for play in plays
        for row in play.rows
        if row.agrees is False
    ] + ["the machine did not keep up" for play in plays if play.emulated.overloaded]


SUMMARY = "summary.json"
KINDS = {"literature": ("literature",), "emulator": ("emulator", "overloaded")}
"""Kinds of comparisons, which can be run separately, with their lists in the summary."""


def write(folder: Path, sections: Sequence[Section]) -> None:
    """Write validation.md and summary.json.

    Rows of this run replace those in the summary. A kind that was not compared keeps its rows and their
    revision. "overloaded" are the plays in which the machine did not keep up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(f"### {section.title}\n\n{section.text}" for section in sections)
    (folder / "validation.md").write_text(f"Revision {revision()}\n\n{text}")
    record: dict[str, Any] = {
        "revision": revision(),
        "revisions": {},
        "literature": [
            _literature(section.source, row) for section in sections if section.source for row in section.rows
        ],
        "emulator": [_emulator(row) for section in sections if not section.source for row in section.rows],
        "overloaded": sorted(
            {row.what for section in sections if section.complaints for row in section.rows}
        ),
    }
    before = _before(folder / SUMMARY)
    for kind, lists in KINDS.items():
        if record[kind] or not before.get(kind):
            record["revisions"][kind] = revision()
        else:
            record |= {name: before[name] for name in lists if name in before}
            record["revisions"][kind] = before.get("revisions", {}).get(kind, before.get("revision"))
    (folder / SUMMARY).write_text(json.dumps(record, indent=1) + "\n")


def _before(path: Path) -> dict[str, Any]:
    """Return the summary that exists, or an empty one if it cannot be read."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _literature(source: str, row: Row) -> dict[str, Any]:
    return {
        "source": source,
        "row": row.what,
        "figure": row.figure,
        "published": row.reference,
        "simulated": row.simulated,
        "deviation": row.deviation,
        "fitted": row.fitted,
    }


def _emulator(row: Row) -> dict[str, Any]:
    return {
        "scenario": row.what,
        "figure": row.figure,
        "emulator": row.reference,
        "simulator": row.simulated,
        "deviation": row.deviation,
        "tolerance": row.tolerance,
        "agrees": row.agrees,
    }
