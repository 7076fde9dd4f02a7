"""The questions of the study, answered in sentences from its figures."""

from __future__ import annotations

from experiments.study.benefit import SECOND_DOLLARS
from experiments.study.design_rules import live_claim, map_claim
from experiments.study.panels.panel import Found, by_system
from experiments.study.played import gains
from experiments.study.rules import axis_sentence, sram_sentence


def answers(found: Found) -> list[str]:
    """In order, as far as it was played: the map, reuse, SRAM, live, what a second is worth."""
    done = found.done
    told = (
        [f"Who is best where? {map_claim(found.verdicts, found.steady, found.around).text}"]
        if found.verdicts
        else []
    )
    reuse = by_system(done, "reuse")
    if reuse:
        places = {value: {name: mine[value] for name, mine in reuse.items()} for value in reuse["switch"]}
        told.append(f"Below which reuse does it not pay? {axis_sentence(places)}")
    return [*told, *_sram(found), *_live(found), _second()]


def _live(found: Found) -> list[str]:
    played = list(gains(found.live))
    return [f"What do the designs earn live? {live_claim(played).text}"] if played else []


def _second() -> str:
    return (
        f"A saved second until the first token counts {SECOND_DOLLARS:.4f} dollars, what a second of a "
        "node costs. That is a convention: the tables have seconds and dollars apart."
    )


def _sram(found: Found) -> list[str]:
    systems = by_system(found.done, "block_tokens")
    if "sram" not in systems:
        return []
    value = next(iter(systems["sram"]))
    return [sram_sentence(value, {name: mine[value] for name, mine in systems.items() if value in mine})]
