"""The ages by which reuse is learned, counted in what was asked for meanwhile: in tokens, so that the same
traffic has the same ages whatever the size of its blocks."""

from __future__ import annotations

USUAL_BLOCK_TOKENS = 512
"""Tokens of a block in the traces on which constants were chosen."""
TICK_TOKENS = 64 * USUAL_BLOCK_TOKENS
"""The grain of ages: a few requests' worth of blocks."""
AGE_EDGES = (1, *[edge for octave in range(1, 13) for edge in (2**octave, 3 * 2 ** (octave - 1))], 8192)
"""Ages in ticks at which a bucket begins: two an octave, up to 268 million tokens."""
BUCKETS = len(AGE_EDGES) + 1


def usual_blocks(block_tokens: int) -> float:
    """Return how many blocks of the usual size a block is. Blocks of a request come again together, so small
    ones tell no more than large ones of as many tokens."""
    return block_tokens / USUAL_BLOCK_TOKENS
