"""Streams of an inference node: chains fetched chunk by chunk, each at the level that the streamer chooses.

A chunk is asked for when the one before it has come, and decoded while the next is on its way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib.model.streamer import TEXT, BandwidthMeter, Rung, Streamer, Waits
from hostlib.node.coder import Coder, loop_time
from hostlib.protocol.transfer import BlockRef, FetchedBlock, FetchedChain
from hostlib.protocol.wire import VALUE_FRAME_BYTES, fingerprint
from workload.levels import level_key

if TYPE_CHECKING:
    from hostlib.client.client import Client


@dataclass(slots=True)
class Streamed:
    """Blocks of a chain that a stream brought."""

    chunks: list[tuple[FetchedChain, float, float]] = field(default_factory=list)
    """Each with when it was asked for and when it had come."""
    keys: list[bytes] = field(default_factory=list)
    """Keys of the blocks that came, in the chain's order."""
    levels: Counter[str] = field(default_factory=Counter)
    """Blocks by level, and those that were left to be computed as text."""
    ready_s: float = 0.0
    """Time at which all blocks will have been decoded; 0 means at once."""
    ended_by: Exception | None = None
    lost: bytes | None = None
    """Key, as the chain has it, of the block that ended the stream before the chain's end."""

    @property
    def blocks(self) -> list[FetchedBlock]:
        """Return all that came."""
        return [block for fetched, _, _ in self.chunks for block in fetched.blocks]


class Streaming:
    """Streams of one node. `target_s`: seconds from a request's arrival to its first token. Times are the
    loop's."""

    def __init__(
        self, client: Client, coder: Coder, rungs: Sequence[Rung], target_s: float, link_bit_s: float
    ) -> None:
        self.target_s = target_s
        self.encode_s = tuple(rung.encode_s for rung in rungs)
        """Of a new block at each of the levels that are stored."""
        self._rungs = tuple(rungs)
        self._client, self._coder = client, coder
        self._meter = BandwidthMeter(link_bit_s / 8, target_s)

    async def fetch(
        self,
        chain: Sequence[BlockRef],
        missing: Sequence[BlockRef],
        deadline_s: float,
        prefill_s: Callable[[Collection[int]], float],
        gpu_wait_s: Callable[[], float],
    ) -> Streamed:
        """Stream what is missing of a chain; ends where a block can't be had. See `Streamer`."""
        streamed = Streamed()
        depths = [block.depth for block in missing]
        streamer = Streamer(self._rungs, self._meter, depths, deadline_s, prefill_s)
        while True:
            began_s = loop_time()
            chunk = streamer.next(began_s, Waits(gpu_wait_s(), self._coder.decoding_s()))
            if chunk is None:
                return streamed
            if chunk.rung is None:
                streamed.levels[TEXT] += len(chunk.depths)
                continue
            level = chunk.rung.level
            fetched = await self._client.get_chain([_leveled(chain, depth, level) for depth in chunk.depths])
            ended_s = loop_time()
            came = len(fetched.blocks)
            fragments = sum(block.fragments for block in fetched.blocks)
            self._meter.report(fragments * VALUE_FRAME_BYTES, began_s, ended_s)
            streamed.chunks.append((fetched, began_s, ended_s))
            streamed.keys.extend(chain[depth].key for depth in chunk.depths[:came])
            if came:
                streamed.levels[str(level)] += came
            ready_s = self._coder.ready_s(fetched.blocks, chunk.rung.decode_s)
            streamed.ready_s = max(streamed.ready_s, ready_s)
            if fetched.ended_by is not None:
                streamed.ended_by, streamed.lost = fetched.ended_by, chain[chunk.depths[came]].key
                return streamed


def _leveled(chain: Sequence[BlockRef], depth: int, level: int) -> BlockRef:
    """Return a block of a chain at a level; its parent is at the same level."""
    parent = fingerprint(level_key(chain[depth - 1].key, level)) if depth else 0
    return chain[depth]._replace(key=level_key(chain[depth].key, level), parent=parent)
