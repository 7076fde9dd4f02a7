"""Client of a node that is a host process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scenario.machine import Machine
from simulator.client import Client, ClientOptions
from simulator.emulated.live_puts import LivePuts
from simulator.emulated.machine import Carrier
from simulator.events import Loop
from simulator.messages import PROBE, Block, Put, Reply, fragments_of
from simulator.network import Network
from simulator.pushed import PushedParts


class EmulatedClient(Client):
    """Client that takes CPU time for each fragment it receives. With `machine.live_puts` it sends PUTs as
    hosts do."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        network: Network,
        options: ClientOptions,
        pushed: PushedParts | None,
        carrier: Carrier,
    ) -> None:
        options = emulated_options(options, carrier.machine)
        super().__init__(loop, name, network, options, pushed)
        self._process, self._fragment_s = carrier.node_process(name), carrier.machine.node_fragment_s
        self._live_puts: LivePuts | None = None
        if carrier.machine.live_puts:
            self._live_puts = LivePuts(loop, name, network, options.lane, options.put_workers)

    def newly_stored(self) -> list[Block]:
        """Return the blocks that homes hold by its live PUTs since the last call."""
        if self._live_puts is None:
            return []
        stored, self._live_puts.stored = self._live_puts.stored, []
        return stored

    def waiting_blocks(self) -> float:
        """Return how many blocks' worth of fragments have not come yet, as hosts report it to the router.

        A block of which nothing has come counts as a single fragment, because its length is not known yet.
        """
        return sum(self.outstanding(1).values(), 0.0)

    def outstanding(self, unknown: int | None = None) -> dict[str, float]:
        """Return the blocks' worth of fragments that have not come, by home.

        A block of which nothing has come counts as `unknown` fragments or, by default, as a whole block, as
        hosts count for their gate.
        """
        waiting: dict[str, float] = {}
        for transfer in self._transfers.values():
            block, missing = transfer.block, transfer.missing
            left = unknown or block.fragments
            if not missing & 1 << PROBE:
                left = sum(fragments for part, fragments in enumerate(block.parts) if missing & 1 << part)
            waiting[block.home] = waiting.get(block.home, 0.0) + left / block.fragments
        return waiting

    def store(self, blocks: Iterable[Block]) -> None:
        if self._live_puts is None:
            super().store(blocks)
        else:
            self._live_puts.store(blocks, self._options.max_waiting_puts)

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        cost_s = fragments_of([reply.ask for reply in replies]) * self._fragment_s
        self._process.do(cost_s, super().replied, replies, neighbour, tail_s)

    def acknowledged(self, put: Put) -> None:
        action = super().acknowledged if self._live_puts is None else self._live_puts.acknowledged
        self._process.do(put.fragments * self._fragment_s, action, put)


def emulated_options(options: ClientOptions, machine: Machine) -> ClientOptions:
    """Return the options of a host process on this machine.

    Its fixed times are `pace` times as long here. With cores, the whole first window of a PUT leaves even if
    the home holds the block, since an emulated block has few fragments.
    """
    lane, pace = options.lane, machine.pace
    lane = replace(
        lane,
        target_backlog_ms=round(lane.target_backlog_ms * pace),
        merged_backlog_ms=round(lane.merged_backlog_ms * pace),
        min_timeout_s=lane.min_timeout_s * pace,
    )
    before_held = lane.initial_window if machine.cores else options.before_held
    return replace(options, lane=lane, before_held=before_held)
