"""The questions of the study, answered in sentences from its figures."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.study.benefit import SECOND_DOLLARS, benefit
from experiments.study.panels import Done, by_system, ttft
from experiments.study.search import Edge
from experiments.study.systems import BASELINES, NAMES


def answers(done: Done, edges: Sequence[Edge]) -> list[str]:
    """One each: size and fan-in, reuse, baselines, SRAM, and what a second is worth."""
    return [
        _size(edges),
        _reuse(done),
        _baselines(done),
        *_sram(done),
        f"A saved second until the first token counts {SECOND_DOLLARS:.4f} dollars, what a second of a "
        f"node costs. That "
        "is a convention: the tables have the dollars a saved second for any other.",
    ]


def _size(edges: Sequence[Edge]) -> str:
    mine = [edge for edge in edges if edge.against == "stores"]
    paying = [edge for edge in mine if edge.from_gb is not None]
    if not paying:
        return "Below which size or fan-in does the pool not pay? No pool pays in any setting searched."
    fewest = min(edge.setting.nodes for edge in paying)
    sizes = [edge.from_gb for edge in paying if edge.from_gb is not None]
    never = sorted({edge.setting.nodes for edge in mine} - {edge.setting.nodes for edge in paying})
    text = (
        f"Below which size or fan-in does the pool not pay? Against the same storage nodes without it, "
        f"it pays from "
        f"{fewest} nodes on, with pools from {min(sizes):.3g} GB (easiest setting) or {max(sizes):.3g} "
        f"GB (hardest that pays)"
    )
    return f"{text}; never with {', '.join(map(str, never))} nodes." if never else f"{text}."


def _reuse(done: Done) -> str:
    found = by_system(done, "reuse")
    gains = {value: benefit(found["switch"][value], found["stores"][value]) for value in found["switch"]}
    paying = [value for value, gain in gains.items() if gain.pays]
    where = (
        f"from {min(paying):.0%} of requests with a shared prefix on"
        if paying
        else "at no share of reuse tried"
    )
    return f"Below which reuse does it not pay? In the centre of the study it pays {where}."


def _baselines(done: Done) -> str:
    found = by_system(done, "shape")
    told = []
    for shape in found["switch"]:
        ranking = sorted((*BASELINES, "switch"), key=lambda name, shape=shape: ttft(found[name][shape]))  # type: ignore[misc]
        told.append(
            f"{shape}: " + ", ".join(f"{NAMES[name]} {ttft(found[name][shape]):.3f} s" for name in ranking)
        )
    return f"Against the baselines (mean first token, the fastest first): {'; '.join(told)}."


def _sram(done: Done) -> list[str]:
    found = by_system(done, "block_tokens")
    if "sram" not in found:
        return []
    value, figures = next(iter(found["sram"].items()))
    gain = benefit(figures, found["stores"][value])
    pool_share = figures["blocks"]["pool"] / max(1, sum(figures["blocks"].values()))
    return [
        f"Is the switch's own SRAM (64 MB) enough? With blocks of {value} tokens it holds "
        f"{figures['pool_blocks']} "
        f"blocks, serves {pool_share:.1%} of all, and the mean first token comes "
        f"{1 - gain.ttft_ratio:+.1%} sooner: "
        f"it {'pays' if gain.pays else 'does not pay'}."
    ]
