"""A node that is a host process."""

from __future__ import annotations

from experiments.simulator.emulated.cpu import Process, Timers
from experiments.simulator.emulated.machine import Carrier
from experiments.simulator.events import Steps
from experiments.simulator.node import Node


class EmulatedNode(Node):
    """It takes CPU time before it asks for anything, and begins and ends at its timers' ticks."""

    def _set_up(self) -> None:
        self._process = Process(None)
        self._prepare_block_s = 0.0
        """CPU time for each block of a request."""
        self._timers: Timers | None = None

    def run_on(self, carrier: Carrier, name: str) -> None:
        """It does from now on, by its name; before, nothing of it takes time."""
        self._process, self._timers = carrier.node_process(name), carrier.timers(self._place)
        self._prepare_block_s = carrier.machine.node_block_s

    def _before(self, blocks: int) -> Steps:
        if self._timers is not None:
            yield self._timers.late_s(self._loop.now)
        if self._prepare_block_s:
            yield from self._prepare(blocks)

    def _after(self, prefill_s: float) -> Steps:
        if self._timers is not None:
            yield self._timers.beyond_s(prefill_s)
            yield from self._prepare(0)

    def _prepare(self, blocks: int) -> Steps:
        """The process comes to it, and does so much."""
        prepared = self._loop.event()
        self._process.do(blocks * self._prepare_block_s, prepared.succeed)
        yield prepared
