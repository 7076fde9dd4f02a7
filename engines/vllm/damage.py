"""Blocks of the engine's own cache that hold wrong KV, from a failed load until they are computed anew. Pure.

vLLM lets a request whose load failed compute the failed blocks again. Until then, steps that were scheduled
already and requests that share the blocks may compute on them, and what they write is wrong as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Write(NamedTuple):
    """Tokens that one request computes in a step."""

    block_ids: Sequence[int]
    """Ids of all blocks of the request."""
    start: int
    """Number of the first token that is computed."""
    end: int
    """Number after the last one."""


class Damage:
    """See the module. Empty as long as no load fails, and then nothing here costs anything."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._right: dict[int, int] = {}
        """Number of the first tokens of each wrong block that are right nevertheless."""

    def __bool__(self) -> bool:
        return bool(self._right)

    @property
    def block_ids(self) -> set[int]:
        """Return the ids of the wrong blocks."""
        return set(self._right)

    def spread(self, failed: Collection[int], holders: Iterable[Sequence[int]]) -> None:
        """Mark as wrong all that a request has behind one of these blocks, which failed to load."""
        self._right.update(dict.fromkeys(failed, 0))
        for ids in holders:
            first = next((number for number, block_id in enumerate(ids) if block_id in failed), None)
            if first is not None:
                self._right.update(dict.fromkeys(ids[first:], 0))

    def step(self, writes: Iterable[Write]) -> set[int]:
        """Take note of a step: what it computes on right blocks becomes right, what on wrong ones wrong.

        Return the first wrong block of each request that computes on wrong ones.
        The requests of a step write a layer before any of them reads it: they may build on one another.
        """
        waiting, before = list(writes), -1
        while len(waiting) != before:
            before, unsound = len(waiting), []
            for write in waiting:
                if self._first_wrong(write) is None:
                    self._write(write, is_right=True)
                else:
                    unsound.append(write)
            waiting = unsound
        found = {self._first_wrong(write) for write in waiting}
        for write in waiting:
            self._write(write, is_right=False)
        return {block_id for block_id in found if block_id is not None}

    def forget(self, block_ids: Iterable[int]) -> None:
        """Forget blocks that a request got anew, which writes or loads them before it reads them."""
        for block_id in block_ids:
            self._right.pop(block_id, None)

    def keep(self, block_ids: Collection[int]) -> None:
        """Keep these blocks alone: nobody can read any other."""
        self._right = {block_id: right for block_id, right in self._right.items() if block_id in block_ids}

    def sound_blocks(self, block_ids: Sequence[int]) -> int:
        """Return the number of blocks from the first one on that are right."""
        damaged = self._right
        return next(
            (number for number, block_id in enumerate(block_ids) if block_id in damaged), len(block_ids)
        )

    def _first_wrong(self, write: Write) -> int | None:
        """Return the first block that is wrong before the tokens that a request computes; None if none is."""
        size = self._block_tokens
        for number, block_id in enumerate(write.block_ids[: -(-write.start // size)]):
            if self._right.get(block_id, size) < min(size, write.start - number * size):
                return block_id
        return None

    def _write(self, write: Write, *, is_right: bool) -> None:
        size = self._block_tokens
        for number in range(write.start // size, -(-write.end // size)):
            block_id = write.block_ids[number]
            start, end = write.start - number * size, write.end - number * size
            right = self._right.get(block_id, size)
            right = max(right, end) if is_right else min(right, max(0, start))
            self._right[block_id] = right
            if right >= size:
                del self._right[block_id]
