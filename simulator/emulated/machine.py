"""Machine that the hosts and switches of an emulation share, and the parts of it that each one gets."""

from __future__ import annotations

from scenario.machine import Machine
from simulator.emulated.cpu import Cold, Cpu, Process, Timers
from simulator.events import Loop


class Carrier:
    """Machine of a scenario; without cores, its processes' work takes no time."""

    def __init__(self, loop: Loop, machine: Machine, seed: int) -> None:
        self.machine = machine
        self._seed = seed
        self._cpu = Cpu(loop, machine.cores, machine.slowdown, seed) if machine.cores else None
        self._nodes: dict[str, Process] = {}

    def switch_process(self) -> Process:
        """Return the process of a switch."""
        machine = self.machine
        return Process(self._cpu, machine.switch_wake_s, Cold((machine.switch_cold_s,), machine.rest_s))

    def store_process(self) -> Process:
        """Return the process of a storage node, or of an index."""
        machine = self.machine
        return Process(self._cpu, machine.host_wake_s, Cold((machine.store_cold_s,), machine.rest_s))

    def node_process(self, name: str) -> Process:
        """Return the process of a node, which is also its client's."""
        process = self._nodes.get(name)
        if process is None:
            machine = self.machine
            cold = Cold((machine.node_cold_s, machine.node_answer_cold_s), machine.rest_s)
            process = self._nodes[name] = Process(self._cpu, machine.host_wake_s, cold)
        return process

    def counted_bit_s(self, link_bit_s: float, header_share: float) -> float:
        """Return the rate of a link that hosts count as left for blocks, in bit/s, without their frames'
        share."""
        return link_bit_s / (1 + header_share) if self.machine.cores else link_bit_s

    def timers(self, place: int) -> Timers | None:
        """Return the timers of one node, or None if it has no ticks."""
        tick_s = self.machine.timer_s
        return Timers(tick_s, f"{self._seed} {place}") if tick_s else None


def carrier_of(loop: Loop, machine: Machine, seed: int) -> Carrier | None:
    """Return the carrier, or None if the scenario has no machine: its parts are then the plain ones."""
    return None if machine == Machine() else Carrier(loop, machine, seed)
