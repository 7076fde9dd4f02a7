"""Costs of answering GETs in a host process, and the backlog that its socket reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from scenario.machine import Machine
from simulator.events import Loop
from simulator.link import Link
from simulator.messages import PROBE, QUESTION, Ask, fragments_of


def answer_s(machine: Machine, asks: Sequence[Ask]) -> float:
    """Return the CPU seconds to answer these requests, by their blocks and fragments."""
    blocks = sum(ask.part == PROBE for ask in asks)
    return blocks * machine.store_block_s + fragments_of(asks) * machine.store_fragment_s


class SocketBacklog:
    """Backlog of a host's link as the host reports it.

    A socket counts buffers, which are larger than their content, and the host reports whole milliseconds of
    its own clock.
    """

    def __init__(self, loop: Loop, egress: Link, value_bytes: float, machine: Machine) -> None:
        self._loop, self._egress, self._value_bytes, self._machine = loop, egress, value_bytes, machine
        self._overheads_s: deque[tuple[float, float]] = deque()
        """Time at which each batch has left, and the seconds that its buffers add to the backlog until
        then."""

    def handed_over(self, asks: Sequence[Ask]) -> None:
        """Note that the requested values have been handed to the socket, and by how much their buffers are
        larger."""
        machine = self._machine
        if machine.buffer_share:
            sent = [ask for ask in asks if ask.part != QUESTION]
            batches = -(-fragments_of(sent) // machine.batch_fragments)
            extra_bytes = batches * machine.buffer_share * self._value_bytes
            self._overheads_s.append((self._egress.free_s, extra_bytes / self._egress.bytes_per_s))

    def said_ms(self, wait_ms: float) -> float:
        """Return the milliseconds that the host reports if `wait_ms` really wait."""
        now_s, overheads_s = self._loop.now, self._overheads_s
        if overheads_s:
            while overheads_s and overheads_s[0][0] <= now_s:
                overheads_s.popleft()
            wait_ms += 1000 * sum((extra_s for _, extra_s in overheads_s), 0.0)
        machine = self._machine
        return round(wait_ms / machine.pace) * machine.pace if machine.cores else wait_ms
