"""Residual value: whether an evicted block is worth sending to its home, under what waits there now.

The cost model knows real times; the network's are shorter by `speed` (workload/scale.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

from controller.policies.eviction_action import EvictionAction, eviction_action
from hostlib.client.backlogs import Backlogs
from workload.cost import CostModel


class ResidualValue:
    """The cost of blocks, and what their homes said last of what waits there."""

    def __init__(
        self,
        cost: CostModel,
        link_bit_s: float,
        speed: float = 1.0,
        links_bit_s: Mapping[IPv4Address, float] | None = None,
    ) -> None:
        """Make it for homes with links of `link_bit_s`, except for those in `links_bit_s`; both at real
        scale."""
        self.speed = speed
        self._cost = cost
        self._link_bit_s, self._links_bit_s = link_bit_s, links_bit_s or {}
        self._backlogs = Backlogs()

    def home_load(self, home: IPv4Address, wait_s: float, now_s: float) -> None:
        """Note how long what waits at a home takes to leave, in the network's time."""
        self._backlogs.report(home, wait_s, now_s)

    def link_bit_s(self, home: IPv4Address) -> float:
        """Return rate of a home's link at real scale."""
        return self._links_bit_s.get(home, self._link_bit_s)

    def is_idle(self, home: IPv4Address, now_s: float) -> bool:
        """Return whether nothing waits at a home any more, as far as it said."""
        return not self._backlogs.wait_s(home, now_s)

    def eviction_action(
        self, reuse_chance: float | None, depth: int, home: IPv4Address, now_s: float, held_elsewhere: bool
    ) -> EvictionAction:
        """Return what is to become of a block at `depth` of its chain."""
        wait_s = self._backlogs.wait_s(home, now_s) * self.speed
        recompute_s = self._cost.block_prefill_s(depth)
        transfer_s = self._cost.fetch_s(self._cost.stored_bytes, self.link_bit_s(home))
        return eviction_action(reuse_chance, recompute_s, transfer_s + wait_s, held_elsewhere)
