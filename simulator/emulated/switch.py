"""Switch that is a program."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.emulated.machine import Carrier
from simulator.events import Loop
from simulator.link import Link
from simulator.messages import Ask, Reply, fragments_of
from simulator.network import Network
from simulator.switch import Switch, SwitchOptions


class EmulatedSwitch(Switch):
    """Switch that takes CPU time for each fragment or request."""

    def __init__(
        self,
        loop: Loop,
        name: str,
        network: Network,
        options: SwitchOptions,
        memory: Link | None,
        carrier: Carrier,
    ) -> None:
        super().__init__(loop, name, network, options, memory)
        self._process, self._packet_s = carrier.switch_process(), carrier.machine.switch_packet_s

    def asked(self, asks: Sequence[Ask], neighbour: str, tail_s: float) -> None:
        cost_s = fragments_of(asks) * self._packet_s
        self._process.do(cost_s, super().asked, asks, neighbour, tail_s)

    def replied(self, replies: Sequence[Reply], neighbour: str, tail_s: float) -> None:
        cost_s = fragments_of([reply.ask for reply in replies]) * self._packet_s
        self._process.do(cost_s, super().replied, replies, neighbour, tail_s)

    def _send_pushed(self, reply: Reply, to: Sequence[str], ready_s: float) -> None:
        self._process.do(reply.ask.fragments * self._packet_s, super()._send_pushed, reply, to, ready_s)
