"""The gate: how many of a chain's missing blocks are worth fetching instead of computing, as the load is now.

Mooncake's arithmetic (FAST'25, section 3.1) compares a prefix's bytes at a bandwidth with its operations at a
rate. Here both sides also wait for their turn:

    saved(k) = prefill(first k missing blocks, behind what is held) - max(0, ready(k) - gpu_wait)
    ready(k) = max(fetch(k), own coder: wait + (k - 1) * decode) + decode
    fetch(k) = max(own link: wait + k * block,  each home: wait + blocks of it among k * block)

Blocks that no codec wrote take no time to decode. A fetch runs while the GPU is busy with other requests, so
only what outlasts that counts. The gate lets the k through that save most; none where nothing is saved.

Behind the prefix that could be had, chunks may be blended (workload/blend.py), k of the missing ones fetched
and the others computed by themselves, or everything be computed exactly, whichever has its first token
sooner:

    blended(k) = max(gpu_wait + chunks by themselves + blending,  ready(k) + last layer)
    exact      = gpu_wait + prefill
Pure: hosts, replays and the simulator ask the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

GATES = ("always", "compare")
ANSWERS, HOMES, SWITCH = "answers", "homes", "switch"
HINTS = (ANSWERS, HOMES, SWITCH)
"""Sources of what a node knows of homes when it decides. "answers": what homes said in their last answers.
"homes": it asks first which of the blocks they hold, and how long what they have promised takes. "switch":
the same, and a switch on the way says what its pool holds."""


class Admitted(NamedTuple):
    """Decision on the missing blocks of a chain. Nobody has the first of those that are neither fetched nor
    refused."""

    blocks: int
    """Number of blocks to fetch, from the first on."""
    refused: int
    """Number of blocks that could be had, but are computed sooner."""


@dataclass(slots=True)
class GateStats:
    """Fetches that were compared, and what became of them."""

    opened: int = 0
    narrowed: int = 0
    """Let through in part."""
    closed: int = 0
    refused_blocks: int = 0
    asked_s: float = 0.0
    """Seconds, together, that requests waited until it was known who holds their blocks."""
    blended: int = 0
    """Requests whose chunks were let through to be blended, all or in part."""
    exact: int = 0
    """Requests with chunks that were computed exactly instead."""


@dataclass(frozen=True, slots=True)
class Load:
    """Seconds of work that waits before a request that comes now."""

    home_s: Callable[[Any], float]
    """Return the seconds of work that waits at a home."""
    link_s: float = 0.0
    """Seconds of what the node has asked for already, at its own link."""
    gpu_s: float = 0.0
    """Seconds of work that waits for the node's GPU."""
    coder_s: float = 0.0
    """Seconds of work that waits for the decoder of the node's blocks."""


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
        """Return how many of the missing blocks, from the first on, to fetch; they come by place in the chain
        and by home.

        What is held behind a block that is not fetched is of no use: it would be computed with it. Where
        only the first of the missing blocks are known to be somewhere, `homes` has no more than these: what
        is missing behind them is computed in any case.
        """
        if not homes:
            return 0
        best, best_s = 0, 0.0
        first, tokens = depths[0], self._block_tokens
        for count, ready_s in enumerate(self._ready_s(homes, load), 1):
            end = depths[count] if count < len(depths) else chain_blocks
            computed_s = self._prefill_s((end - first) * tokens, first * tokens)
            saved_s = computed_s - max(0.0, ready_s - load.gpu_s)
            if saved_s >= best_s:
                best, best_s = count, saved_s
        self._count(best, len(homes))
        return best

    def blends(
        self,
        homes: Sequence[Hashable],
        exact_s: float,
        work_s: Callable[[int], float],
        last_s: float,
        load: Load,
    ) -> int | None:
        """Return how many of the missing chunks, by home, to fetch and blend; None: compute exactly.

        `exact_s`: to compute everything behind the prefix; `work_s(k)`: to blend when k of the missing are
        fetched, the others computed by themselves included; `last_s`: of that its last layer.
        """
        best, best_s = None, load.gpu_s + exact_s
        for count, ready_s in enumerate((0.0, *self._ready_s(homes, load))):
            end_s = max(load.gpu_s + work_s(count), ready_s + last_s)
            if end_s <= best_s:
                best, best_s = count, end_s
        self.stats.blended += best is not None
        self.stats.exact += best is None
        return best

    def _ready_s(self, homes: Sequence[Hashable], load: Load) -> Iterator[float]:
        """Yield when the first block, the first two blocks, and so on, are fetched from these homes and
        decoded."""
        fetch_s = 0.0
        at_home_s: dict[Hashable, float] = {}
        for count, home in enumerate(homes, 1):
            at_home_s[home] = (at_home_s[home] if home in at_home_s else load.home_s(home)) + self.block_s
            fetch_s = max(fetch_s, load.link_s + count * self.block_s, at_home_s[home])
            decoding_s = load.coder_s + (count - 1) * self._decode_s
            yield max(fetch_s, decoding_s) + self._decode_s

    def _count(self, admitted: int, missing: int) -> None:
        self.stats.opened += admitted == missing
        self.stats.narrowed += 0 < admitted < missing
        self.stats.closed += not admitted
        self.stats.refused_blocks += missing - admitted
