"""Interface of a running network, on one machine or on several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from topologies.certificates import Certificates
from topologies.engines import Artifacts, Engine
from topologies.fabric import Fabric
from topologies.process import Process


class RunningNetwork(ABC):
    """Fabric whose hosts and switches are running. Use as a context manager: leaving it removes everything.

    Hosts and switches are named as in the fabric. Files are written below `directory` on this machine, and a
    host may have a copy elsewhere. Give a host the path that `seen_by` returns; `send` it the files it has to
    read.
    """

    fabric: Fabric
    engine: Engine
    directory: Path
    certificates: Certificates | None
    switch_processes: dict[str, Process]

    @abstractmethod
    def address(self, switch: str) -> str:
        """Return where `switch` serves P4Runtime to this machine, as gRPC spells it."""

    def switch_log(self, switch: str) -> Path:
        """Return the file with the output of the switch's processes, the oldest first."""
        return self.directory / f"{switch}.log"

    def interfaces(self, switch: str) -> list[tuple[int, str]]:
        """Return (port, interface) of each port of a switch."""
        return [(port.number, f"{switch}-eth{port.number}") for port in self.fabric.ports(switch)]

    @abstractmethod
    def popen(self, host: str, command: Sequence[str], **options: Any) -> Process:
        """Start a process in the namespace of a host or switch; it ends with the network, or with this
        process."""

    @abstractmethod
    def popen_here(self, command: Sequence[str], **options: Any) -> Process:
        """Start a process on this machine that belongs to the network but to no host."""

    @abstractmethod
    def ask(self, name: str, command: str) -> str:
        """Return the output of a shell command in the namespace of a host or switch."""

    @abstractmethod
    def compile(self, program: Path, defines: Mapping[str, int]) -> Artifacts:
        """Compile a P4 program on every machine that runs switches; raises EngineError if it is refused."""

    @abstractmethod
    def start_switches(self) -> None:
        """Start every switch's process and wait until it serves P4Runtime."""

    @abstractmethod
    def stop_switches(self) -> None:
        """End the switches' processes; they can be started again."""

    @abstractmethod
    def transmitted_bytes(self, host: str) -> int:
        """Return the bytes that left the host's interface since it was made."""

    @abstractmethod
    def link_drops(self) -> int:
        """Return the packets that the queues in front of all links dropped."""

    @abstractmethod
    def link_bytes(self) -> dict[str, tuple[int, int]]:
        """Return the bytes over each link "switch-peer" since it was made: to the switch, and from it."""

    @abstractmethod
    def seen_by(self, name: str, path: Path) -> Path:
        """Return where a host or switch finds what is at `path` below `directory` here."""

    @abstractmethod
    def send(self, name: str, paths: Iterable[Path]) -> None:
        """Make the current content of these files visible to a host or switch."""

    @abstractmethod
    def fetch(self, name: str, path: Path) -> None:
        """Copy a file that a host or switch wrote to the same path on this machine."""

    @abstractmethod
    def clock_ahead_s(self, name: str) -> float:
        """Return by how many seconds CLOCK_MONOTONIC of a host or switch is ahead of ours."""

    @abstractmethod
    def wall_clock_ahead_s(self, name: str) -> float:
        """Return by how many seconds CLOCK_REALTIME of a host or switch is ahead of ours."""
