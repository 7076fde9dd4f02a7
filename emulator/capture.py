"""Captures of the packets at ports of switches, by tcpdump in the switches' namespaces.

A host's traffic is captured at the switch's end of its cable, where packets are as they are on the wire: in
the host the kernel has merged bursts of them already (GRO).
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands.errors import ExperimentError
from topologies.fabric import Fabric
from topologies.process import Process, end_process
from topologies.running import RunningNetwork

BUFFER_KIB = 32 << 10
"""KiB of the kernel's buffer for each capture."""
READY_TIMEOUT_S = 10.0
_POLL_S = 0.02
_LOST = re.compile(r"(\d+) packets? dropped by kernel")
WHOLE_PACKETS = 0


class CaptureError(ExperimentError):
    """A capture is not possible."""


@dataclass(frozen=True, slots=True)
class CapturePlace:
    """Place of a capture: one port of a switch, or all of them."""

    switch: str
    port: int | None = None

    @property
    def interface(self) -> str:
        """Return the interface's name in the switch's namespace, as tcpdump takes it."""
        return "any" if self.port is None else f"{self.switch}-eth{self.port}"


def place_of(fabric: Fabric, name: str) -> CapturePlace:
    """Return where to capture the traffic of a host or switch; raises CaptureError if it does not exist."""
    if name in fabric.switches:
        return CapturePlace(name)
    for switch in fabric.switches:
        for port in fabric.ports(switch):
            if port.peer == name:
                return CapturePlace(switch, port.number)
    there_are = ", ".join([*fabric.nodes, *fabric.stores, *fabric.switches])
    raise CaptureError(f"PCAP: there is no {name!r} in this topology: there are {there_are}")


@dataclass
class Capture:
    """A running or ended capture."""

    file: Path
    """File in nanosecond pcap format; frames are Ethernet at one port, LINUX_SLL2 at all ports."""
    lost: int = 0
    """Packets that the kernel dropped because tcpdump was too slow."""


@contextmanager
def capturing(
    network: RunningNetwork,
    places: Sequence[CapturePlace],
    directory: Path,
    expression: str = "",
    bytes_each: int = 0,
) -> Iterator[list[Capture]]:
    """Capture packets until the block ends, in one file for each place.

    `bytes_each` are kept of a packet, all with WHOLE_PACKETS. Raises CaptureError if tcpdump fails.
    """
    captures: list[Capture] = []
    with ExitStack() as stack:
        for number, place in enumerate(places):
            captures.append(Capture(directory / f"capture-{number}.pcap"))
            stack.enter_context(_running(network, place, captures[-1], expression, bytes_each))
        yield captures


@contextmanager
def _running(
    network: RunningNetwork, place: CapturePlace, capture: Capture, expression: str, bytes_each: int
) -> Iterator[None]:
    command = [
        "tcpdump", "-n", "-i", place.interface, "-w", str(network.seen_by(place.switch, capture.file)),
        "-s", str(bytes_each), "-Z", "root",
        "-B", str(BUFFER_KIB), "--time-stamp-precision=nano",
        *(["-y", "LINUX_SLL2"] if place.port is None else []), *([expression] if expression else []),
    ]  # fmt: skip
    capture.file.touch()
    network.send(place.switch, [capture.file])  # so that its folder is there
    log = capture.file.with_suffix(".log")
    with log.open("wb") as stderr:
        try:
            process = network.popen(place.switch, command, stdin=subprocess.DEVNULL, stderr=stderr)
        except OSError as error:
            raise CaptureError(f"tcpdump can't be run: {error.strerror}; make setup installs it") from None
    try:
        _wait_listening(process, log)
        yield
        process.send_signal(signal.SIGINT)
        process.wait(READY_TIMEOUT_S)
    finally:
        end_process(process)
    network.fetch(place.switch, capture.file)
    if lost := _LOST.search(log.read_text(errors="replace")):
        capture.lost = int(lost[1])


def _wait_listening(process: Process, log: Path) -> None:
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while "listening on" not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise CaptureError(f"tcpdump did not start: {log.read_text(errors='replace').strip()[-500:]}")
        time.sleep(_POLL_S)
