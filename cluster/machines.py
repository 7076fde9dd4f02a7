"""CPU use of the servers of a network, and of this machine beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from cluster.network import ClusterNetwork
from cluster.remote_process import RemoteProcess
from cluster.session import Session
from emulator.machine import CpuTime, CpuUse, cpu_time
from topologies.process import Process


class Servers:
    """The machines of a network over servers, as `emulator.machines.Machines` describes them."""

    def __init__(self, network: ClusterNetwork) -> None:
        self._network = network
        self.use: dict[str, CpuUse] = {}
        """CPU use by server, in the last block that was watched."""

    @property
    def control_apart(self) -> bool:
        """Return whether this machine, where the controller runs, is none of the servers."""
        return self._network.control_apart

    def watch(self) -> ServersWatch:
        """Return a sampler of each server's CPU and its switches' threads."""
        return ServersWatch(self._network, self.use)

    def cpu_time(self, processes: Iterable[Process]) -> CpuTime:
        """Return the CPU time that running processes have used so far, summed."""
        here: list[int] = []
        there: dict[str, list[int]] = {}
        for process in processes:
            if isinstance(process, RemoteProcess):
                there.setdefault(process.server, []).append(process.number)
            else:
                here.append(process.pid)

        def ask(name: str, session: Session) -> CpuTime:
            numbers = there.get(name)
            return CpuTime(**session.ask("cpu_time", processes=numbers)) if numbers else CpuTime()

        times = [cpu_time(here), *(self._network.on_all(ask).values() if there else ())]
        return CpuTime(sum(one.user_s for one in times), sum(one.system_s for one in times))


class ServersWatch:
    """Sampler of all servers' CPU. It samples inside its context only."""

    def __init__(self, network: ClusterNetwork, use: dict[str, CpuUse]) -> None:
        self._network, self._use = network, use

    def __enter__(self) -> Self:
        def begin(name: str, session: Session) -> None:
            switches = [
                process.number
                for process in self._network.switch_processes.values()
                if isinstance(process, RemoteProcess) and process.server == name
            ]
            session.ask("watch", switches=switches)

        self._network.on_all(begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object, /) -> None:
        if kind is not None:  # wait for no server: a lost one may be the cause
            self._network.on_all(lambda name, session: session.tell("watched"))
            return
        self._use.clear()
        self._use.update(self._network.on_all(lambda name, session: CpuUse(**session.ask("watched"))))

    @property
    def use(self) -> CpuUse:
        """Return the highest value of each figure over all servers."""
        seen = self._use.values()
        return CpuUse(
            max(one.mean for one in seen),
            max(one.saturated for one in seen),
            max(one.switch_saturated for one in seen),
        )
