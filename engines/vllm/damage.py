"""Blocks of the engine's own cache that hold wrong KV, from a failed load until they are computed anew. Pure.

vLLM lets a request whose load failed compute the failed blocks again. Until then, steps that were scheduled
already and requests that share the blocks may compute on them, and what they write is wrong as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Write(NamedTuple):
    """What one request computes in a step."""

    block_ids: Sequence[int]
    """All blocks of the request."""
    start: int
    """Number of the first token that is computed."""
    end: int
    """Number after the last one."""


class Damage:
    """See the module. Empty as long as no load fails, and then nothing here costs anything."""

    def __init__(self, block_tokens: int) -> None:
        self.block_ids: set[int] = set()
        self._block_tokens = block_tokens

    def __bool__(self) -> bool:
        return bool(self.block_ids)

    def spread(self, failed: Collection[int], holders: Iterable[Sequence[int]]) -> None:
        """Mark as wrong all that a request has behind one of these blocks, which failed to load."""
        self.block_ids.update(failed)
        for ids in holders:
            first = next((number for number, block_id in enumerate(ids) if block_id in failed), None)
            if first is not None:
                self.block_ids.update(ids[first:])

    def step(self, writes: Iterable[Write]) -> None:
        """Take note of a step: what it computes on right blocks becomes right, what on wrong ones wrong.

        The requests of a step write a layer before any of them reads it: they may build on one another.
        """
        waiting, before = list(writes), -1
        while len(waiting) != before:
            before, unsound = len(waiting), []
            for write in waiting:
                if self._is_sound(write):
                    self.block_ids.difference_update(self._written(write))
                else:
                    unsound.append(write)
            waiting = unsound
        for write in waiting:
            self.block_ids.update(self._written(write))

    def forget(self, block_ids: Iterable[int]) -> None:
        """These blocks are given to a request anew, which writes or loads them before it reads them."""
        self.block_ids.difference_update(block_ids)

    def keep(self, block_ids: Collection[int]) -> None:
        """Nobody can read any other block than these."""
        self.block_ids.intersection_update(block_ids)

    def sound_blocks(self, block_ids: Sequence[int]) -> int:
        """Return the number of blocks from the first one on that are right."""
        damaged = self.block_ids
        return next(
            (number for number, block_id in enumerate(block_ids) if block_id in damaged), len(block_ids)
        )

    def _is_sound(self, write: Write) -> bool:
        """Whether all that the request has before the tokens it computes is right."""
        before = write.block_ids[: -(-write.start // self._block_tokens)]
        return self.block_ids.isdisjoint(before)

    def _written(self, write: Write) -> Sequence[int]:
        size = self._block_tokens
        return write.block_ids[write.start // size : -(-write.end // size)]
