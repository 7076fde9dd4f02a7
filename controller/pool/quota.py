"""Quota: how much of a pool one tenant may hold, whatever the policy would give it.

A tenant that holds as much gives up its own least recently used blocks for each that it is given, before the
policy hears of the new one: the policy then has room for it, and no block of another gives way. What it holds
are its entries and slots, from when the policy admits a block until the switch has removed it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from controller.block_id import tenant_of


@dataclass(slots=True)
class _Held:
    """Blocks and slots of one tenant."""

    blocks: OrderedDict[bytes, int] = field(default_factory=OrderedDict)
    """Fragments by block, the least recently used first."""
    slots: int = 0


class Quota:
    """Bound on the blocks and slots of each tenant; None means no limit. The public namespace is a tenant,
    too."""

    def __init__(self, blocks: int | None = None, slots: int | None = None) -> None:
        self._blocks, self._slots = blocks if blocks is None else max(1, blocks), slots
        self._held: dict[int, _Held] = {}

    def held(self) -> dict[int, int]:
        """Return the number of blocks by tenant; any thread may call it."""
        return {tenant: len(held.blocks) for tenant, held in list(self._held.items())}

    def entered(self, key: bytes, fragments: int) -> None:
        """Note that a block of this length is in the pool, or will be."""
        held = self._held.setdefault(tenant_of(key), _Held())
        held.slots += fragments - held.blocks.get(key, 0)
        held.blocks[key] = fragments

    def touched(self, key: bytes) -> None:
        """Note that a block was asked for."""
        held = self._held.get(tenant_of(key))
        if held is not None and key in held.blocks:
            held.blocks.move_to_end(key)

    def left(self, key: bytes) -> None:
        """Count a block no longer that is not in the pool any more, or will not be."""
        held = self._held.get(tenant_of(key))
        if held is not None:
            held.slots -= held.blocks.pop(key, 0)
            if not held.blocks:
                del self._held[tenant_of(key)]

    def clear(self) -> None:
        """Note that nothing is in the pool."""
        self._held.clear()

    def has_room(self, key: bytes, fragments: int) -> bool:
        """Return whether the block's tenant may have one more, of this length."""
        held = self._held.get(tenant_of(key), _Held())
        return (self._blocks is None or len(held.blocks) < self._blocks) and (
            self._slots is None or held.slots + fragments <= self._slots
        )

    def oldest(self, key: bytes) -> list[bytes]:
        """Return what the block's tenant holds, the least recently used first."""
        return list(self._held.get(tenant_of(key), _Held()).blocks)
