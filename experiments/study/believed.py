"""Objections to whether the simulator may be believed, each with what `make validate` left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Judged = Mapping[str, Any]
"""A row of the summary of make validate."""

RELATIVE = "The simulator was compared with the emulator relative to all blocks"
CHANGED = "Scenarios were changed until simulator and emulator agreed"
MECHANISMS = "Beluga: 9 of 27 rows within 25 %, by mechanisms that were missing"
ONE_DEVICE = "Readers of a pool that is not interleaved met at one device"
FITS = "Published figures were met by fits, or not compared"
OBJECTIONS = (RELATIVE, CHANGED, MECHANISMS, ONE_DEVICE, FITS)
HOW = "make validate PART=literature needs no root and answers three of them; make validate answers all."
BELUGA = "Beluga"
ARITHMETIC = "section 3.1"
"""Of Mooncake's paper: formulas that the cost model has, exact by construction."""
DRAWN = "drawn "
"""How names of scenarios begin that were drawn by number."""


def believed(validated: Path) -> Iterator[tuple[str, str]]:
    """Objections and figures; those without are named, too, with what would make them."""
    found = dict(_answered(validated))
    for objection in OBJECTIONS:
        yield objection, found.get(objection, f"not answered: {validated} has nothing of it ({HOW})")


def missing(validated: Path) -> str | None:
    """What to say where objections are left without their figures."""
    left = len(OBJECTIONS) - len(dict(_answered(validated)))
    if not left:
        return None
    return (
        f"{validated} is missing or has not all parts: {left} of the report's objections, whether the "
        f"simulator may be believed, stay without a figure. {HOW}"
    )


def _answered(validated: Path) -> Iterator[tuple[str, str]]:
    try:
        summary: dict[str, Any] = json.loads(validated.read_text())
    except (OSError, ValueError):
        return
    of = summary.get("revisions") or {}
    when = {
        kind: f"(make validate, revision {of.get(kind, summary.get('revision', 'unknown'))})"
        for kind in ("literature", "emulator")
    }
    overloaded = set(summary.get("overloaded") or [])
    plays: dict[str, bool] = {}
    for row in summary.get("emulator") or []:
        if row.get("tolerance") is not None and row["scenario"] not in overloaded:
            plays[row["scenario"]] = plays.get(row["scenario"], True) and bool(row["agrees"])
    yield from _emulated(plays, when["emulator"])
    yield from _published(summary.get("literature") or [], when["literature"])


def _emulated(plays: Mapping[str, bool], when: str) -> Iterator[tuple[str, str]]:
    """Play -> whether all of its figures agree."""
    if plays:
        said = (
            f"in {sum(plays.values())} of {len(plays)} plays all figures agree within their "
            f"tolerance, a pool's hits relative to these hits {when}"
        )
        yield RELATIVE, said
    drawn: dict[str, bool] = {}
    for play, agrees in plays.items():
        name = play.split(", with")[0]  # a scenario is played without the pool and with it
        if name.startswith(DRAWN):
            drawn[name] = drawn.get(name, True) and agrees
    if drawn:
        said = (
            f"scenarios are drawn by their number (experiments/validate/drawn.py): of {len(drawn)} "
            f"{sum(drawn.values())} agree in all figures, without the pool and with it {when}"
        )
        yield CHANGED, said


def _published(rows: Sequence[Judged], when: str) -> Iterator[tuple[str, str]]:
    counted = [row for row in rows if not row.get("fitted") and not row["source"].endswith(ARITHMETIC)]
    if not counted:
        return
    mine = [row for row in counted if row["source"].startswith(BELUGA)]
    if mine:
        fitted = sum(row["source"].startswith(BELUGA) for row in rows) - len(mine)
        said = f"{near(mine)}; {fitted} more were used to fit and don't count {when}"
        yield MECHANISMS, said
    interleaved = [row for row in mine if row.get("row") == "interleaving"]
    if interleaved:
        said = "; ".join(
            f"{row['figure']}: {row['simulated']:.2f}, published {row['published']:.2f}"
            for row in interleaved
        )
        text = (
            f"readers ask in another order than the pool was filled in; interleaved over not: {said} {when}"
        )
        yield ONE_DEVICE, text
    said = f"of published rows, without those used to fit, {near(counted)} {when}"
    sources = {row["source"]: [one for one in counted if one["source"] == row["source"]] for row in counted}
    if len(sources) > 1:  # one source may have most rows
        said += f"; {'; '.join(f'{name}: {near(own)}' for name, own in sources.items())}"
    yield FITS, said


def near(rows: Sequence[Judged]) -> str:
    """How many deviate by little."""
    within = [sum(abs(row["deviation"]) <= limit for row in rows) for limit in (0.15, 0.25)]
    return f"{within[0]} of {len(rows)} within 15 %, {within[1]} within 25 %"
