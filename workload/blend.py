"""CacheBlend (arXiv 2405.16444) as nodes and the simulator do it: which of a request's blocks are blended.

What a prefix of the chain has is used as it is. Behind it, each block that the trace calls a chunk can be had
under its chunk key wherever it stood before; its keys are turned to where it stands now, and of its tokens a
share is recomputed. Chunks that nobody has are computed by themselves, blended like the others, and stored.
What is no chunk is computed behind what was blended. Blended KV is not exact: of the chain only what is
before the first chunk is stored under its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workload.cost import BlendWork
from workload.trace import Request

DEFAULT_SHARE: Final = 0.15
"""Of the tokens of chunks; the paper recomputes 10 to 20 %, and `make blocks` measures what each costs."""


@dataclass(frozen=True, slots=True)
class BlendPlan:
    """The chunks of a request behind its exact prefix; at least one."""

    places: tuple[int, ...]
    """Of the chunks in the chain."""
    work: BlendWork

    @property
    def exact_blocks(self) -> int:
        """Blocks of the chain before the first chunk: what is computed of them is as exact as the prefix."""
        return self.places[0]

    @property
    def recomputed_tokens(self) -> int:
        """Of the chunks that somebody had."""
        block_tokens = self.work.chunk_tokens // len(self.places)
        return round(self.work.share * block_tokens * (len(self.places) - self.work.alone_chunks))


def plan_blend(
    request: Request, prefix_blocks: int, block_tokens: int, share: float, alone: Sequence[int] = ()
) -> BlendPlan | None:
    """Return what is blended behind so many blocks, where nobody has the chunks at `alone`; None: nothing."""
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
