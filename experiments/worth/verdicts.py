"""When compressing beats a larger pool, and blending recomputing: from pairs of plays with the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from commands.intervals import Interval, mean_interval
from experiments.worth.cells import BLEND, PREFIX, Cell, Figures

Found = Mapping[Cell, Sequence[Figures]]
"""By cell, one for each seed, in the same order."""
PLAIN = "plain"


def differences(found: Found, one: Cell, other: Cell) -> Interval:
    """Mean time to first token of one less that of the other, ms, seed by seed."""
    pairs = zip(found[one], found[other], strict=True)
    return mean_interval([mine.ttft_mean_ms - theirs.ttft_mean_ms for mine, theirs in pairs])


def compressed(found: Found) -> Iterator[dict[str, object]]:
    """For each coded pool the largest plain pool than which its mean time to first token is shorter."""
    for cell in found:
        if cell.codec == PLAIN:
            continue
        plain = sorted(one for one in found if one == cell._replace(codec=PLAIN, blocks=one.blocks))
        beaten = [one.blocks for one in plain if differences(found, cell, one).high < 0]
        less = differences(found, cell, cell._replace(codec=PLAIN))
        yield cell._asdict() | {"than_plain_ms": less, "beats_plain_blocks": max(beaten, default=0)}


def blended(found: Found) -> Iterator[dict[str, object]]:
    """For each pool what blending does to the time to first token, and to what storage nodes send."""
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
