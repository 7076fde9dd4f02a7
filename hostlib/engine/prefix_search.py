"""Search for the number of a prompt's blocks that are there, from the first one on, with few questions.

A block is split over shards, and each shard's objects are stored in the order of the prompt. So each shard is
assumed to have all blocks up to some number and none behind it. Questions are asked in waves of at most
`WAVE`, spread evenly over the blocks that are open, until no block is open. If all open blocks and shards fit
one wave, all are asked. A small wave comes first, because of most new prompts little is there.

A hole is a block that is gone while one behind it is there. A hole is noticed if it is asked about: always in
prompts that fit one wave, otherwise by chance. A hole that is not noticed is found when the block fails to
load. The module does no I/O but for `ask`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

WAVE = 256
"""Number of questions that one look-up has in flight at once."""
FIRST_WAVE = 32

ObjectPlace = tuple[int, int]
"""Number of a block, and of a shard."""
Ask = Callable[[Sequence[ObjectPlace]], Awaitable[Sequence[bool]]]
"""Whether each of these places is known to be there."""


class PrefixSearch:
    """One look-up. `found` may be read at any time, also when `run` was cancelled."""

    def __init__(self, blocks: int, shards: int, wave: int = WAVE) -> None:
        self._end = blocks
        """Number of the first block that lacks a shard; at first, number of all blocks."""
        self._there = [0] * shards
        """Number of blocks that each shard has, from the first one on, as far as is known."""
        self._wave = max(wave, 2 * shards)
        self._waves = 0
        self._sparse = False
        """Whether the wave that is out is too thin to say what is there."""

    @property
    def found(self) -> int:
        """Return the number of blocks from the first one on that every shard has, as far as is known."""
        return min(self._end, *self._there)

    def end_at(self, block: int) -> None:
        """End the prefix before a block that is not there; those behind it do not count."""
        self._end = min(self._end, block)

    async def run(self, ask: Ask) -> int:
        """Ask until all is known; return `found`."""
        while places := self._next_places():
            self.learn(places, await ask(places))
        return self.found

    def learn(self, places: Sequence[ObjectPlace], answers: Sequence[bool]) -> None:
        """Take answers into account."""
        lacking = [block for (block, _), is_there in zip(places, answers, strict=True) if not is_there]
        self.end_at(min(lacking, default=self._end))
        self._waves += 1
        if self._sparse:
            self._sparse = False
            return
        for block, shard in places:
            if block < self._end:
                self._there[shard] = max(self._there[shard], block + 1)

    def _next_places(self) -> list[ObjectPlace]:
        """Return the questions of the next wave; none if all is known."""
        open_shards = [shard for shard, there in enumerate(self._there) if there < self._end]
        wave = self._wave if self._waves else FIRST_WAVE
        if sum(self._end - self._there[shard] for shard in open_shards) <= wave:
            return [(block, shard) for shard in open_shards for block in range(self._there[shard], self._end)]
        self._sparse = not self._waves
        places: dict[ObjectPlace, None] = {}
        for number in range(wave):
            shard = open_shards[number % len(open_shards)]
            first, last = self._there[shard], self._end - 1
            places[first + number * (last - first) // (wave - 1), shard] = None
        return list(places)
