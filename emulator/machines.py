"""The machines that a network runs on: how busy they are, and what its processes use of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self

from emulator.machine import CpuTime, CpuUse, CpuWatch, cpu_time
from topologies.process import Process
from topologies.running import RunningNetwork


class Watching(Protocol):
    """Samples in the background, as a context manager and inside it alone."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object, /) -> None: ...

    @property
    def use(self) -> CpuUse:
        """Return what was seen, once it has ended."""


class Machines(Protocol):
    """What is asked of the machines of a network."""

    @property
    def control_apart(self) -> bool:
        """Return whether the controller has a machine of its own, and so takes nothing from the hosts."""

    def watch(self) -> Watching:
        """Return what samples the CPUs and the threads of the switches that run now."""

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return what running processes have used so far, together."""


class ThisMachine:
    """For a network that is on this machine alone."""

    control_apart = False

    def __init__(self, network: RunningNetwork) -> None:
        self._network = network

    def watch(self) -> CpuWatch:
        """Return what samples this machine."""
        return CpuWatch(process.pid for process in self._network.switch_processes.values())

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return what running processes have used so far, together."""
        return cpu_time(process.pid for process in processes)
