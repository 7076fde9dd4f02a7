"""The codec of an emulated node: how long blocks are, and when they are coded.

Nothing is really coded: content is made up, and coding takes as long as it was measured to take
(workload/compression.py). Blocks are decoded one after the other in the order in which their fetches end,
each from when it arrived, so that decoding overlaps with the rest of its chain's transfer. New blocks are
encoded one after the other before they are sent to their homes. Neither holds up the other, nor the GPU.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hostlib.protocol import wire
from workload.compression import BlockSizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hostlib.protocol.transfer import FetchedBlock
    from workload.levels import Ladder

REMEMBERED: Final = 4096
"""Blocks decoded last: requests that waited for the same fetch have its blocks decoded once."""


@dataclass(slots=True)
class CoderStats:
    """Blocks."""

    encoded: int = 0
    decoded: int = 0
    decode_wait_s: float = 0.0
    """Requests' time from the last block's arrival until all were decoded, added up."""


def loop_time() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time()


class Coder:
    """Lengths by `sizes`; seconds of the emulation, by the clock `now_s`.

    Of blocks that are stored at several levels each has times of its own, which its user gives.
    """

    def __init__(
        self,
        sizes: BlockSizes | Ladder,
        encode_s: float = 0.0,
        decode_s: float = 0.0,
        now_s: Callable[[], float] = loop_time,
    ) -> None:
        self.stats = CoderStats()
        self.decode_s = decode_s
        self._sizes, self._encode_s, self._now_s = sizes, encode_s, now_s
        self._encoder_free_s = self._decoder_free_s = 0.0
        self._decoded: OrderedDict[tuple[bytes, float], float] = OrderedDict()
        """When a block was decoded, by key and arrival."""

    def stored(self, key: bytes) -> list[tuple[bytes, int]]:
        """Return keys and lengths, as they are sent, of what is stored of a block."""
        return [(stored, fragments * wire.VALUE_BYTES) for stored, fragments in self._sizes.stored(key)]

    def decoding_s(self) -> float:
        """Return how long a block that comes now waits for its turn."""
        return max(0.0, self._decoder_free_s - self._now_s())

    async def encode(self, encode_s: float | None = None) -> None:
        """Return when a new block has been encoded; `encode_s`: not the coder's own time."""
        took_s = self._encode_s if encode_s is None else encode_s
        if not took_s:
            return
        now_s = self._now_s()
        self._encoder_free_s = max(now_s, self._encoder_free_s) + took_s
        self.stats.encoded += 1
        await asyncio.sleep(self._encoder_free_s - now_s)

    async def decode(self, blocks: Iterable[FetchedBlock]) -> float:
        """Return when all of these have been decoded, with the time that took from now on."""
        if not self.decode_s:
            return 0.0
        return await self.wait_until(self.ready_s(blocks, self.decode_s))

    async def wait_until(self, ready_s: float) -> float:
        """Return when a request's blocks have been decoded, with the time that took from now on."""
        wait_s = max(0.0, ready_s - self._now_s())
        self.stats.decode_wait_s += wait_s
        await asyncio.sleep(wait_s)
        return wait_s

    def ready_s(self, blocks: Iterable[FetchedBlock], decode_s: float) -> float:
        """Return when these, which have arrived, will have been decoded, each in `decode_s`; 0 for none."""
        if not decode_s:
            return 0.0
        return max((self._ready_s(block, decode_s) for block in _by_arrival(blocks)), default=0.0)

    def _ready_s(self, block: FetchedBlock, decode_s: float) -> float:
        arrival = block.key, block.times.done_s
        ready_s = self._decoded.get(arrival)
        if ready_s is None:
            ready_s = max(block.times.done_s, self._decoder_free_s) + decode_s
            self._decoder_free_s = self._decoded[arrival] = ready_s
            self.stats.decoded += 1
            if len(self._decoded) > REMEMBERED:
                self._decoded.popitem(last=False)
        return ready_s


def _by_arrival(blocks: Iterable[FetchedBlock]) -> list[FetchedBlock]:
    return sorted(blocks, key=lambda block: block.times.done_s)
