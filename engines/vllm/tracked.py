"""A request that is waiting or running, as the scheduler's side tracks it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from vllm.v1.request import Request

    from engines.vllm.jobs import BlockRun
    from engines.vllm.keys import RequestKeys
    from engines.vllm.lookups import Lookup
    from engines.vllm.media import Media

RETRY_STEPS = 16
"""Number of steps after which blocks that were not stored are offered again."""
MAX_RETRIES = 8
"""Number of times that blocks of one request are offered again."""
RETRIED_BLOCKS = 256
"""Most blocks that one step offers again."""


@dataclass(slots=True)
class Offered:
    """Blocks of a request that are known to be in the pool, or were offered to it."""

    blocks: int = 0
    """Number of them, from the first one on."""
    _refused: int | None = None
    """Number of the first block that was offered and not stored."""
    _retry_step: int = 0
    _retries: int = 0

    def begin(self) -> None:
        """Offer all: the request starts, or starts over."""
        self.blocks, self._refused = 0, None

    def take_back(self, first: int) -> None:
        """Count nothing from this block on."""
        self.blocks = min(self.blocks, first)

    def refuse(self, first: int, settled_step: int) -> None:
        """Offer this block and what is behind it again some time after the step that is settled last."""
        if self._retries >= MAX_RETRIES:
            return
        if self._refused is None:
            self._retries += 1
            self._retry_step = settled_step + RETRY_STEPS
            self._refused = first
        self._refused = min(self._refused, first)

    def due(self, whole: int, step: int) -> int:
        """Return up to which block a step offers, of those that are whole: few if some are offered again."""
        if self._refused is not None and step >= self._retry_step:
            self.take_back(self._refused)
            whole = min(whole, self._refused + RETRIED_BLOCKS)
            self._refused = None
        return whole


@dataclass(slots=True)
class Tracked:
    """See the module."""

    request: Request
    media: Future[Media]
    """Names of its images and sounds, which take a while."""
    keys: RequestKeys | None = None
    """None if its KV is not shared."""
    is_new: bool = True
    """Whether its keys are still to be made."""
    lookup: Lookup | None = None
    own_blocks: int = 0
    """Blocks that it found in the engine's own cache."""
    load: BlockRun | None = None
    """Run of blocks that it got from the pool when it was scheduled last."""
    limit: int = sys.maxsize
    """Number of the first block that failed to load: neither it nor what is behind it is looked for again."""
    offered: Offered = field(default_factory=Offered)

    def end_lookup(self) -> None:
        """Cancel the look-up, because nobody needs its answer any more."""
        if self.lookup is not None:
            self.lookup.cancel()
            self.lookup = None
