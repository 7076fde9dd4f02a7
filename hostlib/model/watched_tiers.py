"""Tiers that say what they have come to hold, and what no longer."""

from __future__ import annotations

from collections.abc import Callable

from hostlib.model.tier_rules import TierRule
from hostlib.model.tiers import LocalTiers


class WatchedTiers(LocalTiers[bytes]):
    """`on_change` is called at the first change since `changed` was asked."""

    def __init__(self, gpu_blocks: int, dram_blocks: int, rule: TierRule[bytes] | None = None) -> None:
        super().__init__(gpu_blocks, dram_blocks, rule)
        self.on_change: Callable[[], None] = lambda: None
        self._touched: set[bytes] = set()
        self._told: set[bytes] = set()

    def changed(self) -> tuple[list[bytes], list[bytes]]:
        """Return what came, and what left, since it was asked last."""
        touched, told = self._touched, self._told
        came = [key for key in touched if key in self and key not in told]
        left = [key for key in touched if key not in self and key in told]
        touched.clear()
        told.update(came)
        told.difference_update(left)
        return came, left

    def _raise(self, key: bytes, came_from_dram: bool) -> None:
        super()._raise(key, came_from_dram)
        self._touch(key)

    def _put_below(self, key: bytes) -> None:
        super()._put_below(key)
        self._touch(key)

    def _drop(self, key: bytes) -> None:
        super()._drop(key)
        self._touch(key)

    def _touch(self, key: bytes) -> None:
        first = not self._touched
        self._touched.add(key)
        if first:
            self.on_change()
