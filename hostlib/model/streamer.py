"""The streamer: at which level each chunk of a chain is fetched, so that the first token comes in time.

As CacheGen's (arXiv 2310.07240; its artifact's run_adaptation.py gives each chunk the same part of the time,
and takes the best level at which it comes in that, else its text). Here all that is left of the chain is
expected to come at the rate at which the last chunk came, and the best level is taken at which the first
token would still meet its deadline:

    ready(level) = max(n * block / rate, max(decoder's wait, block / rate) + (n - 1) * decode) + decode
    token(level) = now + max(ready(level), gpu's wait) + prefill(what is not fetched)

for the n blocks that are left, with the level's bytes of a block and time to decode one.

Where no level meets it, what is left is taken as text, that is computed, or at the coarsest level, whichever
gives the first token sooner. Text comes last although it loses nothing: the GPU's time is what the pool is to
save.

Pure: hosts and the simulator ask the same code. Bytes and seconds are those of whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

CHUNK_BLOCKS = 3
"""Blocks of a chunk: of 512 tokens, CacheGen's 1,500."""
AIM = 0.9
"""Share of the asked time to the first token that a stream aims at, because expectations are not exact."""
TEXT = "text"
"""Instead of a level's number where chunks are counted by level."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One level of blocks."""

    level: int
    block_bytes: float
    """Mean, as it is sent."""
    decode_s: float
    """Seconds to decode one block."""
    encode_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds of work that waits at the node."""

    gpu_s: float = 0.0
    """Seconds before a request that comes to the GPU now."""
    coder_s: float = 0.0
    """Seconds before a block that comes to the decoder now."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next blocks, by place in the chain, and their rung; without a rung they are computed."""

    depths: tuple[int, ...]
    rung: Rung | None


class BandwidthMeter:
    """The rate of the chunk that a node got last; the link's where that is longer ago than `believed_s`.

    The latter lets a node that computed for a while because its link was slow try again.
    """

    def __init__(self, link_bytes_per_s: float, believed_s: float) -> None:
        self._link_bytes_per_s, self._believed_s = link_bytes_per_s, believed_s
        self._bytes_per_s = link_bytes_per_s
        self._measured_s = float("-inf")

    def report(self, got_bytes: float, began_s: float, ended_s: float) -> None:
        """Count a chunk of so many bytes that came from its first request to its last reply; the rate is
        never above the link's."""
        if got_bytes <= 0:
            return
        least_s = got_bytes / self._link_bytes_per_s
        self._bytes_per_s = got_bytes / max(least_s, ended_s - began_s)
        self._measured_s = ended_s

    def bytes_per_s(self, now_s: float) -> float:
        """Return what the next chunk is expected to come at."""
        believed = now_s - self._measured_s <= self._believed_s
        return self._bytes_per_s if believed else self._link_bytes_per_s


class Streamer:
    """One chain; ask `next` for a chunk, report what came to the meter, ask again."""

    def __init__(
        self,
        rungs: Sequence[Rung],
        meter: BandwidthMeter,
        missing: Sequence[int],
        deadline_s: float,
        prefill_s: Callable[[Collection[int]], float],
        chunk_blocks: int = CHUNK_BLOCKS,
    ) -> None:
        """Plan a stream. `missing`: places of the blocks that the node lacks. `prefill_s`: seconds of the
        request if the blocks at these places are computed and all others of the chain are there."""
        if not rungs or chunk_blocks < 1:
            raise ValueError("a stream needs at least one level and chunks of at least one block")
        self.text: list[int] = []
        """Places of what was not to be fetched."""
        self._rungs, self._meter = tuple(rungs), meter
        self._left = tuple(missing)
        self._deadline_s, self._prefill_s = deadline_s, prefill_s
        self._chunk_blocks = chunk_blocks

    def next(self, now_s: float, waits: Waits) -> Chunk | None:
        """Return the chunk to fetch, or to compute, now; None at the end of the chain."""
        if not self._left:
            return None
        rung = self._choose(now_s, waits)
        depths, self._left = self._left[: self._chunk_blocks], self._left[self._chunk_blocks :]
        if rung is None:
            self.text.extend(depths)
        return Chunk(depths, rung)

    def _choose(self, now_s: float, waits: Waits) -> Rung | None:
        rate, blocks = self._meter.bytes_per_s(now_s), len(self._left)
        owed_s = self._prefill_s(self.text)

        def token_s(rung: Rung) -> float:
            block_s = rung.block_bytes / rate
            decoding_s = max(waits.coder_s, block_s) + (blocks - 1) * rung.decode_s
            ready_s = max(blocks * block_s, decoding_s) + rung.decode_s
            return now_s + max(ready_s, waits.gpu_s) + owed_s

        for rung in self._rungs:
            if token_s(rung) <= self._deadline_s:
                return rung
        computed_s = self._prefill_s([*self.text, *self._left])
        # What was fetched before may still wait for the decoder.
        as_text_s = now_s + max(waits.gpu_s, waits.coder_s) + computed_s
        return self._rungs[-1] if token_s(self._rungs[-1]) <= as_text_s else None


def mean_level(levels: Mapping[str, int]) -> float | None:
    """Return the mean level of blocks counted by level, of those that came; None where none did."""
    came = {int(level): count for level, count in levels.items() if level != TEXT}
    blocks = sum(came.values())
    return round(sum(level * count for level, count in came.items()) / blocks, 4) if blocks else None
