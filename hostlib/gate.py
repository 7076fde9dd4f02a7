"""The gate: how many of a chain's missing blocks are worth fetching instead of computing, as the load is now.

Mooncake's arithmetic (FAST'25, section 3.1) compares a prefix's bytes at a bandwidth with its operations at a
rate. Here both sides also wait for their turn:

    saved(k) = prefill(first k missing blocks, behind what is held) - max(0, ready(k) - gpu_wait)
    ready(k) = max(fetch(k), own coder: wait + (k - 1) * decode) + decode
    fetch(k) = max(own link: wait + k * block,  each home: wait + blocks of it among k * block)

Blocks that no codec wrote take no time to decode. A fetch runs while the GPU is busy with other requests, so
only what outlasts that counts. The gate lets the k through that save most; none where nothing is saved.
Pure: hosts, replays and the simulator ask the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

GATES = ("always", "compare")


@dataclass(slots=True)
class GateStats:
    """Fetches that were compared, and what became of them."""

    opened: int = 0
    narrowed: int = 0
    """Let through in part."""
    closed: int = 0
    refused_blocks: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """What waits now, in seconds."""

    home_s: Callable[[Any], float]
    """At a home, for whoever asks now."""
    link_s: float = 0.0
    """At the node's own link, what it has asked for already."""
    gpu_s: float = 0.0
    """Before a request that comes to the node's GPU now."""
    coder_s: float = 0.0
    """Before a block that comes to what decodes the node's blocks."""


class Gate:
    """`prefill_s(tokens, context_tokens)`, `block_s`, a block on a link, and `decode_s`, from its codec, are
    seconds of one kind."""

    def __init__(
        self,
        prefill_s: Callable[[int, int], float],
        block_tokens: int,
        block_s: float,
        decode_s: float = 0.0,
    ) -> None:
        self.stats = GateStats()
        self.block_s = block_s
        self._decode_s = decode_s
        self._prefill_s = prefill_s
        self._block_tokens = block_tokens

    def admits(self, depths: Sequence[int], homes: Sequence[Hashable], chain_blocks: int, load: Load) -> int:
        """How many of the missing blocks, from the first on, to fetch; by place in the chain and by home.

        What is held behind a block that is not fetched is of no use: it would be computed with it.
        """
        if not depths:
            return 0
        best, best_s, fetch_s = 0, 0.0, 0.0
        first, tokens = depths[0], self._block_tokens
        ready_s: dict[Hashable, float] = {}
        for count, home in enumerate(homes, 1):
            ready_s[home] = (ready_s[home] if home in ready_s else load.home_s(home)) + self.block_s
            fetch_s = max(fetch_s, load.link_s + count * self.block_s, ready_s[home])
            end = depths[count] if count < len(depths) else chain_blocks
            computed_s = self._prefill_s((end - first) * tokens, first * tokens)
            decoding_s = load.coder_s + (count - 1) * self._decode_s
            saved_s = computed_s - max(0.0, max(fetch_s, decoding_s) + self._decode_s - load.gpu_s)
            if saved_s >= best_s:
                best, best_s = count, saved_s
        self._count(best, len(depths))
        return best

    def _count(self, admitted: int, missing: int) -> None:
        self.stats.opened += admitted == missing
        self.stats.narrowed += 0 < admitted < missing
        self.stats.closed += not admitted
        self.stats.refused_blocks += missing - admitted


@dataclass
class Backlogs:
    """What homes last said of the work waiting there; as time passes, that work is done."""

    _until_s: dict[Hashable, float] = field(default_factory=dict)

    def report(self, home: Hashable, wait_s: float, now_s: float) -> None:
        """A home said that so much waits there."""
        self._until_s[home] = now_s + wait_s

    def wait_s(self, home: Hashable, now_s: float) -> float:
        """What is left of it; 0 for a home that said nothing."""
        return max(0.0, self._until_s.get(home, 0.0) - now_s)
