"""Pushed parts at a node that is a host process."""

from __future__ import annotations

from collections.abc import Callable

from simulator.emulated.machine import Carrier
from simulator.messages import Block
from simulator.pushed import PushedParts


class EmulatedPushedParts(PushedParts):
    """Pushed parts whose subscriptions are renewed by the host's clock, which an emulation does not speed
    up."""

    def __init__(
        self, holds: Callable[[Block], bool], keep: Callable[[Block], None], carrier: Carrier
    ) -> None:
        super().__init__(holds, keep)
        self._pace = carrier.machine.pace

    def asks(self, block: Block, now_s: float) -> bool:
        return super().asks(block, now_s / self._pace)
