"""Store of a node that lends its memory, from which others' GETs are answered.

The tiers of an emulated node hold keys (hostlib.model.tiers). Here each block has the content, content id and
tags that its writer gave it. They are made when they are first read (hostlib.protocol.content), and are the
same at all nodes that hold the block.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from hostlib.protocol.block import Place
from hostlib.protocol.content import Content, derivation
from hostlib.protocol.seal import Seal
from hostlib.storage.store import BlockStore


class Lent:
    """Blocks of one tenant; `length` says how many bytes a block has as it is sent."""

    def __init__(self, seal: Seal, content: Content, length: Callable[[bytes], int]) -> None:
        # What it holds is bounded by the tiers that it follows.
        self.store = BlockStore(sys.maxsize, None, derivation(seal, content=content))
        self._tenant, self._length = seal.tenant, length

    def add(self, keys: Sequence[bytes]) -> None:
        """Add blocks that the node has come to hold."""
        places = [Place(self._tenant, key) for key in keys]
        self.store.preload(places, 0, {place: self._length(place.key) for place in places})

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove blocks that the node no longer holds."""
        for key in keys:
            self.store.drop(Place(self._tenant, key))
