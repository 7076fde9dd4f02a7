"""Blocks of a storage node that leave after all others, within bounds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.protocol.block import Place


class RetainedPlaces:
    """Places of retained blocks: at most `most_blocks`, in `most_bytes`, of which one tenant has half."""

    def __init__(self, most_bytes: int, most_blocks: int) -> None:
        self._most_bytes, self._most_blocks = most_bytes, most_blocks
        self._lengths: dict[Place, int] = {}
        self._bytes: Counter[int] = Counter()
        """By tenant."""

    def __len__(self) -> int:
        return len(self._lengths)

    def __contains__(self, place: object) -> bool:
        return place in self._lengths

    def add(self, place: Place, length: int) -> bool:
        """Retain a block of so many bytes; False if as much as may be is retained already."""
        tenants = self._bytes[place.tenant] + length
        if len(self) >= self._most_blocks or tenants > self._most_bytes / 2:
            return False
        if self._bytes.total() + length > self._most_bytes:
            return False
        self._lengths[place] = length
        self._bytes[place.tenant] = tenants
        return True

    def remove(self, place: Place) -> bool:
        """Retain a block no longer; return whether it was retained."""
        length = self._lengths.pop(place, None)
        if length is None:
            return False
        self._bytes[place.tenant] -= length
        return True
