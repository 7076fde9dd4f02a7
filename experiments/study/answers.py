"""The questions of the study, answered in sentences from its figures."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.study.benefit import SECOND_DOLLARS
from experiments.study.panels import by_system
from experiments.study.rivals import Done, rivals_answer
from experiments.study.rules import axis_sentence, sram_sentence, systems_sentence
from experiments.study.search import Edge


def answers(done: Done, edges: Sequence[Edge]) -> list[str]:
    """In order, as far as its sweep was played: equal cost, size, reuse, baselines, SRAM."""
    told = rivals_answer(done)
    if edges:
        told.append(_size(edges))
    reuse = by_system(done, "reuse")
    if reuse:
        places = {value: {name: mine[value] for name, mine in reuse.items()} for value in reuse["switch"]}
        told.append(f"Below which reuse does it not pay? {axis_sentence(places)}")
    shapes = by_system(done, "shape")
    if shapes:
        told += [
            systems_sentence(shape, {name: mine[shape] for name, mine in shapes.items()})
            for shape in shapes["switch"]
        ]
    return [*told, *_sram(done), _second()]


def _second() -> str:
    return (
        f"A saved second until the first token counts {SECOND_DOLLARS:.4f} dollars, what a second of a "
        "node costs. That is a convention: the tables have seconds and dollars apart."
    )


def _size(edges: Sequence[Edge]) -> str:
    """Never the word "pays": the same storage nodes are not all that could be bought."""
    mine = [edge for edge in edges if edge.against == "stores"]
    earning = [edge for edge in mine if edge.from_gb is not None]
    question = "Which size and fan-in earn their cost against the same storage nodes? "
    if not earning:
        return question + "No pool does in any setting searched."
    fewest = min(edge.setting.nodes for edge in earning)
    sizes = [edge.from_gb for edge in earning if edge.from_gb is not None]
    never = sorted({edge.setting.nodes for edge in mine} - {edge.setting.nodes for edge in earning})
    text = (
        f"{question}From {fewest} nodes on, pools from {min(sizes):.3g} GB (easiest setting) or "
        f"{max(sizes):.3g} GB (hardest)"
    )
    return f"{text}; never with {', '.join(map(str, never))} nodes." if never else f"{text}."


def _sram(done: Done) -> list[str]:
    found = by_system(done, "block_tokens")
    if "sram" not in found:
        return []
    value = next(iter(found["sram"]))
    return [sram_sentence(value, {name: mine[value] for name, mine in found.items() if value in mine})]
