"""The machines that carry a network: their load, and the CPU time of the network's processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self

from emulator.machine import CpuTime, CpuUse, CpuWatch, cpu_time
from topologies.process import Process
from topologies.running import RunningNetwork


class Watching(Protocol):
    """Background sampler of CPU use. It samples inside its context only."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object, /) -> None: ...

    @property
    def use(self) -> CpuUse:
        """Return the CPU use of the samples; complete once the context has ended."""


class Machines(Protocol):
    """Measurements that the emulation takes of a network's machines."""

    @property
    def control_apart(self) -> bool:
        """Return whether the controller has a machine of its own, and so takes no CPU from the hosts."""

    def watch(self) -> Watching:
        """Return a sampler of the CPUs and of the threads of the switches that run now."""

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return the CPU time that running processes have used so far, summed."""


class ThisMachine:
    """The machine of a network that is on this machine alone."""

    control_apart = False

    def __init__(self, network: RunningNetwork) -> None:
        self._network = network

    def watch(self) -> CpuWatch:
        """Return a sampler of this machine."""
        return CpuWatch(process.pid for process in self._network.switch_processes.values())

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return the CPU time that running processes have used so far, summed."""
        return cpu_time(process.pid for process in processes)
