"""CacheBlend (arXiv 2405.16444) as nodes and the simulator run it: which blocks of a request are blended.

The chain's cached prefix is used as it is. Behind it, each block that the trace calls a chunk can be fetched
by its chunk key, wherever it stood before. Its keys are rotated to its new position, and a share of its
tokens is recomputed. Chunks that nobody has are computed by themselves, blended like the others, and stored.
Blocks that are no chunks are computed behind the blended ones. Blended KV is not exact, so of the chain only
the blocks before the first chunk are stored under their chain keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workload.cost import BlendWork
from workload.trace import Request

DEFAULT_SHARE: Final = 0.15
"""Share of the chunks' tokens that is recomputed. The paper recomputes 10 to 20 %; `make blocks` measures the
loss at each share."""


@dataclass(frozen=True, slots=True)
class BlendPlan:
    """Chunks of a request behind its exact prefix; at least one."""

    places: tuple[int, ...]
    """Indices of the chunks in the chain, ascending."""
    work: BlendWork

    @property
    def exact_blocks(self) -> int:
        """Return the number of blocks before the first chunk; their KV is exact, cached or computed."""
        return self.places[0]

    @property
    def recomputed_tokens(self) -> int:
        """Return the number of recomputed tokens, without those of chunks that nobody had."""
        block_tokens = self.work.chunk_tokens // len(self.places)
        return round(self.work.share * block_tokens * (len(self.places) - self.work.alone_chunks))


def plan_blend(
    request: Request, prefix_blocks: int, block_tokens: int, share: float, alone: Sequence[int] = ()
) -> BlendPlan | None:
    """Return what to blend behind the first `prefix_blocks`, or None if no chunk is behind them.

    Nobody has the chunks at the indices `alone`.
    """
    places = tuple(
        place for place, chunk in enumerate(request.chunks) if place >= prefix_blocks and chunk is not None
    )
    if not places:
        return None
    context_tokens, chunk_tokens = prefix_blocks * block_tokens, len(places) * block_tokens
    # At least the last token is computed behind the others, whatever it belongs to.
    new_tokens = max(1, request.input_tokens - context_tokens - chunk_tokens)
    left_out = sum(place in places for place in alone)
    return BlendPlan(places, BlendWork(context_tokens, chunk_tokens, new_tokens, share, left_out))
