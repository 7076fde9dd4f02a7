"""KV events: which blocks of an engine are in the pool, for routers that send requests where their prefix is.

vLLM numbers and publishes them beside those of its own cache, and replays what a router has missed. The pool
says nothing by itself: that a block has left it is noticed when the block is looked for or loaded.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vllm.v1.request import Request

MAX_OFFERED: Final = 16_384
"""Number of blocks on their way to the pool of which the event is kept ready; more are not told of."""
MAX_TOLD: Final = 1 << 17
"""Number of blocks that are remembered as told; of older ones it is not said when they are gone."""
MAX_WAITING: Final = 1 << 17
"""Number of events that wait to be taken."""


class Described(NamedTuple):
    """One block, as vLLM names it."""

    block_hash: Any
    event: Any
    """Event that says that the block is in the pool."""


class PoolEvents:
    """See the module."""

    def __init__(
        self,
        describe: Callable[[Request, int], Described | None],
        removed: Callable[[Any], Any],
        shards: int,
    ) -> None:
        """Make it; `describe` names a block of a request by its number, or returns None where vLLM has no
        hash of it.

        `removed` makes the event that says of a hash that its block is gone. `shards` is the number of
        workers that store a part of each block.
        """
        self._describe, self._removed, self._shards = describe, removed, shards
        self._offered: OrderedDict[bytes, tuple[Described, set[int]]] = OrderedDict()
        self._told: OrderedDict[bytes, Any] = OrderedDict()
        """The hash of each block that was told of, by its key."""
        self._waiting: list[Any] = []
        self.left_out = 0
        """Events that were not told, as nobody took those before."""

    def offered(self, request: Request, first: int, keys: Iterable[bytes]) -> None:
        """Note that blocks of a request, from number `first` on, are on their way to the pool."""
        for number, key in enumerate(keys, first):
            described = None if key in self._told else self._describe(request, number)
            if described is not None:
                self._offered[key] = (described, set())
                if len(self._offered) > MAX_OFFERED:
                    self._offered.popitem(last=False)

    def stored(self, stored: Mapping[int, Iterable[bytes]]) -> None:
        """Note that workers, by rank, have stored their part of these blocks."""
        for rank, keys in stored.items():
            for key in keys:
                described, ranks = self._offered.get(key, (None, set()))
                ranks.add(rank)
                if described is not None and len(ranks) == self._shards:
                    del self._offered[key]
                    self._tell(key, described)

    def found(self, request: Request, first: int, keys: Iterable[bytes]) -> None:
        """Note that blocks of a request, from number `first` on, are in the pool."""
        for number, key in enumerate(keys, first):
            described = None if key in self._told else self._describe(request, number)
            if described is not None:
                self._tell(key, described)

    def gone(self, keys: Iterable[bytes]) -> None:
        """Note that these blocks are not in the pool, or can't be reached without those before them."""
        for key in keys:
            block_hash = self._told.pop(key, None)
            if block_hash is not None:
                self._wait(self._removed(block_hash))

    def clear(self) -> None:
        """Say that nothing that was announced is found any more."""
        self.gone(list(self._told))
        self._offered.clear()

    def take(self) -> list[Any]:
        """Return the events since the last call, in order."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _tell(self, key: bytes, described: Described) -> None:
        self._told[key] = described.block_hash
        if len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)
        self._wait(described.event)

    def _wait(self, event: Any) -> None:
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(event)
        else:
            self.left_out += 1
