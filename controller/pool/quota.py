"""Quota: how much of a pool one tenant may hold, whatever the policy would give it.

A tenant that holds as much gives up its own least recently used block for each that it is given, before the
policy hears of the new one: the policy then has room for it, and no block of another gives way.
"""

from __future__ import annotations

from collections import OrderedDict

from controller.block_id import tenant_of


class Quota:
    """At most `blocks` for each tenant; the public namespace counts as one. None: no limit."""

    def __init__(self, blocks: int | None) -> None:
        self.blocks = blocks if blocks is None else max(1, blocks)
        self._held: dict[int, OrderedDict[bytes, None]] = {}
        """By tenant, the least recently used first."""

    def held(self) -> dict[int, int]:
        """Blocks by tenant; from any thread."""
        return {tenant: len(blocks) for tenant, blocks in list(self._held.items())}

    def entered(self, key: bytes) -> None:
        """Note that a block is in the pool."""
        self._held.setdefault(tenant_of(key), OrderedDict())[key] = None

    def touched(self, key: bytes) -> None:
        """Note that a block was asked for."""
        held = self._held.get(tenant_of(key))
        if held is not None and key in held:
            held.move_to_end(key)

    def left(self, key: bytes) -> None:
        """A block is not in the pool any more."""
        held = self._held.get(tenant_of(key))
        if held is not None:
            held.pop(key, None)
            if not held:
                del self._held[tenant_of(key)]

    def clear(self) -> None:
        """Note that nothing is in the pool."""
        self._held.clear()

    def victim_for(self, key: bytes) -> bytes | None:
        """Return which block has to go if this one is to come, None if its tenant has room."""
        held = self._held.get(tenant_of(key), OrderedDict())
        is_full = self.blocks is not None and len(held) >= self.blocks
        return next(iter(held)) if is_full else None
