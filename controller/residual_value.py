"""Residual value: whether an evicted block is worth sending to its home, under what waits there now.

The cost model knows real times; the network's are shorter by `speed` (workload/scale.py).
"""

from __future__ import annotations

from ipaddress import IPv4Address

from controller.policies.fate import Fate, fate_of
from hostlib.gate import Backlogs
from workload.cost import CostModel


class ResidualValue:
    """The cost of blocks, and what their homes said last of what waits there."""

    def __init__(self, cost: CostModel, link_bit_s: float, speed: float = 1.0) -> None:
        self.speed = speed
        self._cost = cost
        self._transfer_s = cost.fetch_s(cost.stored_bytes, link_bit_s)
        self._backlogs = Backlogs()

    def home_load(self, home: IPv4Address, wait_s: float, now_s: float) -> None:
        """A home reported how long what waits there takes to leave, in the network's time."""
        self._backlogs.report(home, wait_s, now_s)

    def is_idle(self, home: IPv4Address, now_s: float) -> bool:
        """Whether nothing waits at a home any more, as far as it said."""
        return not self._backlogs.wait_s(home, now_s)

    def fate(
        self, reuse_chance: float | None, depth: int, home: IPv4Address, now_s: float, held_elsewhere: bool
    ) -> Fate:
        """What is to become of a block at `depth` of its chain."""
        wait_s = self._backlogs.wait_s(home, now_s) * self.speed
        recompute_s = self._cost.block_prefill_s(depth)
        return fate_of(reuse_chance, recompute_s, self._transfer_s + wait_s, held_elsewhere)
