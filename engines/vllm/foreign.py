"""Blocks of the engine's own cache whose KV another connector loaded, and what was computed on them.

Nobody here knows what such KV depends on: the other connector may have taken that of another adapter, or of
other weights. It must not get into the pool under keys that say exactly what it depends on. The same holds of
what the engine itself is known to compute wrong, and of what a streaming session computes behind its first
turn: vLLM resumes it like a request that another connector loaded.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_log = logging.getLogger("weir")


class Computed(Protocol):
    """Fields of a request that have to be known."""

    request_id: str
    num_computed_tokens: int
    """Number of its tokens whose KV is there before the next step."""
    lora_request: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFaults:
    """Faults of an engine: KV that it computes wrong, and that is not stored, or can't compute again."""

    recomputes_wrong: bool = False
    """It computes tokens wrong that a connector could not load in a step."""
    schedules_ahead: bool = False
    """It has scheduled the next step, which it can't take back, when it learns that a load failed in one."""
    applies_others_adapters: bool = False
    """It computes requests without an adapter with the adapter of another request in the same step."""


NO_FAULTS: Final = EngineFaults()


class ForeignBlocks:
    """See the module. Empty as long as no other connector loads, and then nothing here costs anything."""

    def __init__(
        self,
        blocks_of: Callable[[str], Sequence[int]],
        block_tokens: int,
        faults: EngineFaults = NO_FAULTS,
    ) -> None:
        """Make it; `blocks_of` returns the ids of a request's blocks."""
        self._blocks_of, self._block_tokens, self._faults = blocks_of, block_tokens, faults
        self._block_ids: set[int] = set()
        self._first: dict[str, int] = {}
        """Number of the first foreign block of each request that has one; all behind it are foreign, too."""
        self._allocated: dict[str, tuple[Computed, Sequence[int], int]] = {}
        """Requests that got blocks since the last step, in order: with the blocks that were in the engine's
        cache, and the number of blocks whose origin is known."""
        self._has_told = self._has_told_of_adapters = False

    def allocated(
        self, request: Computed, block_ids: Sequence[int], own_blocks: int, known_blocks: int
    ) -> None:
        """Note that a request has got these blocks.

        The first `own_blocks` were in the engine's cache; the pool loads those up to `known_blocks`.
        """
        self._block_ids.difference_update(block_ids[own_blocks:])
        self._first.pop(request.request_id, None)
        self._allocated.pop(request.request_id, None)
        self._allocated[request.request_id] = (request, block_ids[:own_blocks], known_blocks)

    def step(self, given: Iterable[int], computing: Sequence[Computed]) -> None:
        """Begin a step: running requests are given these blocks, and those in `computing` compute."""
        self._block_ids.difference_update(given)
        allocated, self._allocated = self._allocated, {}
        for request, own, known_blocks in allocated.values():
            self._begin(request, own, known_blocks)  # which may have found what one before it loads
        if self._first:
            for request in computing:
                self._follow(request)
        if self._faults.applies_others_adapters:
            self._distrust_mixed(computing)

    def end(self, request_id: str) -> None:
        """End a request; its blocks may be found in the engine's cache."""
        self._first.pop(request_id, None)
        self._allocated.pop(request_id, None)

    def sound_blocks(self, request_id: str) -> int | None:
        """Return the number of blocks before the first foreign one of a request; None if it has none."""
        return self._first.get(request_id)

    def _begin(self, request: Computed, own: Sequence[int], known_blocks: int) -> None:
        """Begin a request with these blocks of the engine's cache."""
        known = own if self._block_ids else ()
        foreign = [number for number, block_id in enumerate(known) if block_id in self._block_ids]
        if request.num_computed_tokens > known_blocks * self._block_tokens:
            foreign.append(known_blocks)
            self._tell()
        if foreign:
            self._first[request.request_id] = foreign[0]
            self._follow(request)

    def _follow(self, request: Computed) -> None:
        """Count as foreign what a request computes on foreign blocks."""
        first = self._first.get(request.request_id)
        if first is None:
            return
        block_ids = self._blocks_of(request.request_id)[first:]
        if request.num_computed_tokens <= first * self._block_tokens and not self._faults.recomputes_wrong:
            del self._first[request.request_id]  # the other connector's load has failed
            self._block_ids.difference_update(block_ids)
        else:
            self._block_ids.update(block_ids)

    def _distrust_mixed(self, computing: Sequence[Computed]) -> None:
        """Count as foreign what requests without an adapter compute in a step with one."""
        plain = [request for request in computing if request.lora_request is None]
        if not plain or len(plain) == len(computing):
            return
        for request in plain:
            first = request.num_computed_tokens // self._block_tokens
            first = self._first[request.request_id] = min(first, self._first.get(request.request_id, first))
            self._block_ids.update(self._blocks_of(request.request_id)[first:])
        if not self._has_told_of_adapters:
            self._has_told_of_adapters = True
            _log.warning(
                "KV of requests without an adapter is not stored where others in the same batch have one: on "
                "CPUs, vLLM computes it with theirs."
            )

    def _tell(self) -> None:
        if not self._has_told:
            self._has_told = True
            _log.warning(
                "What another connector loads, or a streaming session computes after its first turn, is not "
                "stored in the pool, nor what is computed on it: it is not known what that KV depends on."
            )
