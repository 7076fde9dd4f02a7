"""The blocks of a storage node: DRAM over SSD, both bounded, and PUTs that are not complete yet."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlib.assembly import Assembly
from hostlib.content import block_content
from hostlib.wire import VALUE_BYTES, Message, fragment_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.ssd import SsdTier


@dataclass(slots=True)
class StoreStats:
    """Blocks."""

    dram_hits: int = 0
    ssd_hits: int = 0
    misses: int = 0
    stored: int = 0
    demoted: int = 0
    """Moved from DRAM to SSD."""
    read_ahead: int = 0
    """Moved from SSD to DRAM before anyone asked for them."""
    read_ahead_hits: int = 0
    """Of those, asked for since."""
    read_ahead_unused: int = 0
    """Of those, moved back before anyone asked for them."""
    partial_dropped: int = 0
    """PUTs given up incomplete, to make room for newer ones."""


class BlockStore:
    """Blocks of one size, least recently used DRAM blocks demoted to SSD.

    A block in DRAM whose content is None is a preloaded one: its emulated content is derived from its key
    when it is read. It takes its full size of the DRAM budget all the same.
    """

    def __init__(
        self, block_bytes: int, dram_bytes: int, ssd: SsdTier | None, max_partial: int = 1024
    ) -> None:
        self.stats = StoreStats()
        self._block_bytes = block_bytes
        self._fragments = fragment_count(block_bytes)
        self._dram_blocks = max(1, dram_bytes // block_bytes)
        self._dram: OrderedDict[bytes, bytes | None] = OrderedDict()
        self._ssd = ssd
        self._assembly = Assembly(block_bytes, max_partial)
        self._not_asked: set[bytes] = set()
        """Blocks in DRAM that were read ahead."""

    def preload(self, keys: Sequence[bytes]) -> None:
        """Hold these blocks, most recently used last, without having received them."""
        split = max(0, len(keys) - self._dram_blocks)
        if self._ssd is not None:
            self._ssd.put_many((key, None) for key in keys[:split])
        for key in keys[split:]:
            self._insert(key, None)

    def get(self, key: bytes) -> bytes | None:
        """The content of a complete block; None if it isn't here."""
        try:
            content = self._dram[key]
        except KeyError:
            return self._promote(key)
        self._dram.move_to_end(key)
        self.stats.dram_hits += 1
        if key in self._not_asked:
            self._not_asked.remove(key)
            self.stats.read_ahead_hits += 1
        return block_content(key, self._block_bytes) if content is None else content

    def accepts(self, message: Message) -> bool:
        """Whether a PUT has the shape of a fragment of this store's blocks."""
        at = message.fragment * VALUE_BYTES
        return message.fragments == self._fragments and len(message.value) == min(
            VALUE_BYTES, self._block_bytes - at
        )

    def put_fragment(self, message: Message) -> bool:
        """Keep one accepted fragment; whether the block is whole, and so visible, from then on."""
        key = message.key
        if key not in self._assembly and key in self:
            if key in self._dram:
                self._dram.move_to_end(key)
            return True  # blocks are immutable
        content = self._assembly.add(message)
        self.stats.partial_dropped = self._assembly.given_up
        if content is None:
            return False
        self.stats.stored += 1
        self._insert(key, content)
        return True

    def __contains__(self, key: bytes) -> bool:
        return key in self._dram or (self._ssd is not None and key in self._ssd)

    def on_ssd_only(self, key: bytes) -> bool:
        """Whether the block has to be read from SSD first."""
        return key not in self._dram and self._ssd is not None and key in self._ssd

    def read_from_ssd(self, key: bytes, ahead: bool) -> None:
        """Move a block to DRAM, if it is still on SSD only; `ahead`: before anyone asked for it."""
        content = self._ssd.get(key) if self._ssd is not None and key not in self._dram else None
        if content is None:
            return
        if ahead:
            self.stats.read_ahead += 1
            self._not_asked.add(key)
        else:
            self.stats.ssd_hits += 1
        self._insert(key, content)

    def sizes(self) -> dict[str, int]:
        """Blocks in each place."""
        return {
            "dram": len(self._dram),
            "ssd": len(self._ssd) if self._ssd is not None else 0,
            "partial": len(self._assembly),
        }

    def _promote(self, key: bytes) -> bytes | None:
        self.read_from_ssd(key, ahead=False)
        if key not in self._dram:
            self.stats.misses += 1
        return self._dram.get(key)

    def _insert(self, key: bytes, content: bytes | None) -> None:
        self._dram[key] = content
        self._dram.move_to_end(key)
        while len(self._dram) > self._dram_blocks:
            self._demote(*self._dram.popitem(last=False))

    def _demote(self, key: bytes, content: bytes | None) -> None:
        if key in self._not_asked:
            self._not_asked.remove(key)
            self.stats.read_ahead_unused += 1
        if self._ssd is not None and key not in self._ssd:
            self._ssd.put(key, content)
            self.stats.demoted += 1
