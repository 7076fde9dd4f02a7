"""Node that is a host process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hostlib.model.gate import Load
from simulator.emulated.client import EmulatedClient
from simulator.emulated.cpu import Process, Timers
from simulator.emulated.lenders import EmulatedLender
from simulator.emulated.machine import Carrier
from simulator.events import Steps
from simulator.node import Node


class EmulatedNode(Node):
    """Node that takes CPU time before it asks for blocks; requests begin and prefills end at its timers'
    ticks."""

    def _set_up(self) -> None:
        self._process = Process(None)
        self._prepare_block_s = 0.0
        """CPU seconds for each block of a request."""
        self._timers: Timers | None = None

    def run_on(self, carrier: Carrier, name: str) -> None:
        """Run as the process of the node `name` from now on; before that, its work takes no time."""
        self._process, self._timers = carrier.node_process(name), carrier.timers(self._place)
        self._prepare_block_s = carrier.machine.node_block_s

    def _load_now(self, home_s: Callable[[Any], float]) -> Load:
        """Return the node's load as hosts count it.

        Blocks that are being fetched and have not come yet count on the link, and at least at their homes.
        """
        load, fetcher = super()._load_now(home_s), self.fetcher
        client = fetcher.client if isinstance(fetcher, EmulatedLender) else fetcher
        if self._process.free or not isinstance(client, EmulatedClient):
            return load
        waiting, block_s = client.outstanding(), self.block_s
        return replace(
            load,
            link_s=sum(waiting.values(), 0.0) * block_s,
            home_s=lambda home: max(home_s(home), waiting.get(home, 0.0) * block_s),
        )

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
        """Wait until the process has done the CPU work for so many blocks."""
        prepared = self._loop.event()
        self._process.do(blocks * self._prepare_block_s, prepared.succeed)
        yield prepared
