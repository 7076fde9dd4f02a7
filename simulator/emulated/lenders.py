"""Nodes that lend their memory, each a host process, and an index that is a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostlib.model.tiers import LocalTiers
from simulator.client import Client
from simulator.emulated.answers import SocketBacklog, answer_s
from simulator.emulated.machine import Carrier
from simulator.events import Event, Loop
from simulator.lenders import Lender, Lenders
from simulator.messages import Ask, Block
from simulator.network import Network


class EmulatedLenders(Lenders):
    """Lenders whose index is a process like a storage node's."""

    def __init__(
        self,
        loop: Loop,
        network: Network,
        lookup_s: float,
        block_s: float,
        latency_s: float,
        carrier: Carrier,
    ) -> None:
        super().__init__(loop, network, lookup_s, block_s, latency_s)
        self.carrier, self.index = carrier, carrier.store_process()

    def _lender(self, node: int, client: Client, tiers: LocalTiers[Block]) -> Lender:
        return EmulatedLender(self, node, client, tiers, self._network)


class EmulatedLender(Lender):
    """Lender whose node's process answers, at the CPU time of a storage node's, and reports its socket's
    backlog.

    A question wakes the index, and the answer wakes the node; no link is between them. The index is told of
    everything that the node has come to hold.
    """

    def __init__(
        self, lenders: EmulatedLenders, node: int, client: Client, tiers: LocalTiers[Block], network: Network
    ) -> None:
        super().__init__(lenders, node, client, tiers, network)
        self.client = client
        self._machine = machine = lenders.carrier.machine
        self._process, self._index = lenders.carrier.node_process(client.name), lenders.index
        self._backlog = SocketBacklog(lenders.loop, self._egress, network.sizes.value_bytes, machine)

    def ask_index(self, blocks: Sequence[Block]) -> Event | float:
        if self._process.free:
            return super().ask_index(blocks)
        answered, cost_s = self._lenders.loop.event(), self._machine.index_s
        self._index.do(cost_s, self._process.do, cost_s, answered.succeed)
        return answered

    def store(self, blocks: Iterable[Block]) -> None:
        self._fetched.clear()
        for block in self._tiers.keys():  # noqa: SIM118  (tiers are no mapping)
            self._lenders.holders.note(self._node, block)

    def backlog_ms(self) -> float:
        return self._backlog.said_ms(super().backlog_ms())

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        self._process.do(answer_s(self._machine, asks), self._answer, asks, neighbour, tail_s)

    def _answer(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        super().asked(asks, neighbour, tail_s)
        self._backlog.handed_over(asks)
