"""Results of compressing against a larger pool, and of blending against recomputing, from
pairs of equal seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from commands.intervals import Interval, mean_interval
from experiments.worth.cells import BLEND, PREFIX, Cell, Figures

Found = Mapping[Cell, Sequence[Figures]]
"""Figures of each cell, one for each seed, in the same order."""
PLAIN = "plain"


def differences(found: Found, one: Cell, other: Cell) -> Interval:
    """Return the mean time to first token of `one` less that of `other`, in ms, seed by seed."""
    pairs = zip(found[one], found[other], strict=True)
    return mean_interval([mine.ttft_mean_ms - theirs.ttft_mean_ms for mine, theirs in pairs])


def compressed(found: Found) -> Iterator[dict[str, object]]:
    """Yield for each coded pool the largest plain pool with a longer mean time to first token.

    The difference to plain blocks in the same memory comes with it.
    """
    for cell in found:
        if cell.codec == PLAIN:
            continue
        plain = sorted(one for one in found if one == cell._replace(codec=PLAIN, blocks=one.blocks))
        beaten = [one.blocks for one in plain if differences(found, cell, one).high < 0]
        less = differences(found, cell, cell._replace(codec=PLAIN))
        yield cell._asdict() | {"than_plain_ms": less, "beats_plain_blocks": max(beaten, default=0)}


def blended(found: Found) -> Iterator[dict[str, object]]:
    """Yield for each pool how blending changes the mean time to first token and the GPU time."""
    for cell in found:
        other = cell._replace(reuse=PREFIX)
        if cell.reuse != BLEND:
            continue
        pairs = list(zip(found[cell], found[other], strict=True))
        yield {
            **cell._asdict(),
            "than_prefix_ms": differences(found, cell, other),
            "than_prefix_gpu": mean_interval([mine.gpu_s / theirs.gpu_s - 1 for mine, theirs in pairs]),
        }
