"""Blocks put together from fragments that come one by one, bounded in number."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlib.wire import VALUE_BYTES, fragment_count

if TYPE_CHECKING:
    from hostlib.wire import Message


@dataclass(slots=True)
class _Partial:
    content: bytearray
    missing: set[int]


class Assembly:
    """Incomplete blocks of one size; of more than `max_partial` the oldest is given up and counted."""

    def __init__(self, block_bytes: int, max_partial: int) -> None:
        self.given_up = 0
        self._block_bytes, self._max_partial = block_bytes, max_partial
        self._partial: OrderedDict[bytes, _Partial] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._partial

    def __len__(self) -> int:
        return len(self._partial)

    def add(self, message: Message) -> bytes | None:
        """Take a fragment; the content once all are there. A fragment that is there already is ignored."""
        partial = self._partial.get(message.key) or self._open(message.key)
        if message.fragment not in partial.missing:
            return None
        at = message.fragment * VALUE_BYTES
        partial.content[at : at + len(message.value)] = message.value
        partial.missing.remove(message.fragment)
        if partial.missing:
            return None
        del self._partial[message.key]
        return bytes(partial.content)

    def _open(self, key: bytes) -> _Partial:
        if len(self._partial) >= self._max_partial:
            self._partial.popitem(last=False)
            self.given_up += 1
        fragments = set(range(fragment_count(self._block_bytes)))
        partial = self._partial[key] = _Partial(bytearray(self._block_bytes), fragments)
        return partial
