"""Storage node that is a host process and sends through a socket's buffers."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.emulated.answers import SocketBacklog, answer_s
from simulator.emulated.live_puts import Piece
from simulator.emulated.machine import Carrier
from simulator.events import Loop
from simulator.messages import Ask, Block, Put, Reply
from simulator.network import Network
from simulator.store import Acknowledged, Store


class EmulatedStore(Store):
    """Storage node that takes CPU time and takes blocks fragment by fragment.

    The backlog that it reports counts its buffers' sizes, in whole milliseconds of its own clock.
    """

    def __init__(
        self,
        loop: Loop,
        name: str,
        network: Network,
        dram_blocks: int,
        ssd_blocks: int,
        ssd_bytes_per_s: float,
        acknowledged: Acknowledged,
        carrier: Carrier,
    ) -> None:
        super().__init__(loop, name, network, dram_blocks, ssd_blocks, ssd_bytes_per_s, acknowledged)
        self._process, self._machine = carrier.store_process(), carrier.machine
        self._backlog = SocketBacklog(loop, self._egress, network.sizes.value_bytes, carrier.machine)
        self._pieces: dict[Block, dict[str, int]] = {}
        """Number of fragments that have come of blocks that are sent fragment by fragment, by block and
        sender."""

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        self._process.do(answer_s(self._machine, asks), self._answer, asks, neighbour, tail_s)

    def _answer(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        super().asked(asks, neighbour, tail_s)
        self._backlog.handed_over(asks)

    def _deny(self, nowhere: Sequence[Reply]) -> None:
        if self._process.free:
            super()._deny(nowhere)
            return
        for reply in nowhere:  # each reply wakes the processes that it passes
            self._port.reply([reply])

    def put(self, put: Put) -> None:
        self._process.do(put.fragments * self._machine.store_fragment_s, super().put, put)

    def _take(self, put: Put) -> bool:
        return self._take_piece(put) if isinstance(put, Piece) else super()._take(put)

    def _take_piece(self, put: Piece) -> bool:
        """Take a fragment of a block and return whether the block is held then.

        Fragments are counted for each sender. A fragment of a block that is held is a use of the block.
        """
        block = put.block
        if not self.holds(block):
            senders = self._pieces.setdefault(block, {})
            senders[put.sender] = senders.get(put.sender, 0) + 1
            if senders[put.sender] < block.fragments:
                return False
            del self._pieces[block]
        return self._keep(block)

    def backlog_ms(self) -> float:
        return self._backlog.said_ms(super().backlog_ms())
