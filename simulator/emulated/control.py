"""Controller that is a program on the machine."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

from controller.config import PoolSize
from controller.policies import Policy
from controller.pool.residual_value import ResidualValue
from scenario.tables import Control
from simulator.control import SwitchControl
from simulator.emulated.machine import Carrier
from simulator.events import Loop
from simulator.messages import Block
from simulator.switch import Switch
from workload.cost import CostModel


class EmulatedControl(SwitchControl):
    """Controller whose clock is the emulation's: its seconds are `machine.pace` times as long here.

    If hosts take CPU time, they also report how long computing a block takes, in whole milliseconds of that
    clock.
    """

    def __init__(
        self,
        loop: Loop,
        switch: Switch,
        policy: Policy,
        size: PoolSize,
        options: Control,
        homes: Mapping[str, IPv4Address],
        residual: ResidualValue,
        push_share: float,
        carrier: Carrier,
        cost: CostModel,
    ) -> None:
        self._pace, self._hosts_say, self._cost = carrier.machine.pace, bool(carrier.machine.cores), cost
        residual.speed = self._pace  # backlogs are by that clock, costs of blocks in real seconds
        super().__init__(loop, switch, policy, size, options, homes, residual, push_share)

    def _by_clock(self, time: float) -> float:
        return time / self._pace

    def _lasts(self, time: float) -> float:
        return self._pace * time

    def _recompute_ms(self, block: Block) -> int:
        if not self._hosts_say:
            return super()._recompute_ms(block)
        return round(self._by_clock(1000 * self._cost.block_prefill_s(block.depth)))
