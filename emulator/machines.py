"""The machines that a network runs on: how busy they are, and what its processes use of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from emulator.machine import CpuTime, CpuUse, CpuWatch, cpu_time
from topologies.process import Process
from topologies.running import RunningNetwork


class Watching(Protocol):
    """Samples in the background."""

    def stop(self) -> CpuUse:
        """End sampling; what was seen."""


class Machines(Protocol):
    """What is asked of the machines of a network."""

    @property
    def control_apart(self) -> bool:
        """Return whether the controller has a machine of its own, and so takes nothing from the hosts."""

    def watch(self) -> Watching:
        """Begin to sample CPUs and the threads of the switches that run."""

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return what running processes have used so far, together."""


class ThisMachine:
    """For a network that is on this machine alone."""

    control_apart = False

    def __init__(self, network: RunningNetwork) -> None:
        self._network = network

    def watch(self) -> CpuWatch:
        """Begin to sample."""
        watch = CpuWatch(process.pid for process in self._network.switch_processes.values())
        watch.start()
        return watch

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return what running processes have used so far, together."""
        return cpu_time(process.pid for process in processes)
