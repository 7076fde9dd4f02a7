"""Packets from and to pcap files instead of interfaces (`--use-files`)."""

from __future__ import annotations

import heapq
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.trace.pcap import PcapFile, read_pcap

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping

    from v1model.switch import Switch

LOOK_FOR_OUTPUTS_EVERY_S = 0.1

logger = logging.getLogger(__name__)


class PacketFiles:
    """Ports of a switch as files.

    A port takes the packets in NAME_in.pcap, if that exists, and sends to NAME_out.pcap. Raises OSError, or
    ValueError for a file in another format.
    """

    def __init__(self, ports: Mapping[int, str]) -> None:
        """Open the files; `ports` maps numbers to NAMEs, which may include folders."""
        self._inputs = {
            port: read_pcap(path)
            for port, name in ports.items()
            if (path := Path(f"{name}_in.pcap")).exists()
        }
        self._outputs = {port: PcapFile(Path(f"{name}_out.pcap")) for port, name in ports.items()}

    def run(self, switch: Callable[[], Switch | None], stopped: threading.Event, wait_s: float) -> None:
        """Inject all packets in the order of their times, once `wait_s` have passed and there is a `switch`.

        Then write what the switch sends by itself, until `stopped`. The program sees the time of the files.
        """
        if stopped.wait(wait_s):
            return
        while (found := switch()) is None:
            if stopped.wait(LOOK_FOR_OUTPUTS_EVERY_S):
                return
        logger.info("%d packets from files, %d sent", *self._take_all(found))
        while not stopped.wait(LOOK_FOR_OUTPUTS_EVERY_S):
            if found := switch():
                self._write(found, None)

    def close(self) -> None:
        for file in self._outputs.values():
            file.close()

    def _take_all(self, switch: Switch) -> tuple[int, int]:
        """Inject all packets; returns the numbers of packets taken and sent.

        Time begins with the first packet and never goes back: a packet with an earlier time than the one
        before it comes at once.
        """
        taken = sent = now_us = 0
        first_ns: int | None = None
        for time_ns, port, frame in self._in_order():
            first_ns = time_ns if first_ns is None else first_ns
            now_us = max(now_us, (time_ns - first_ns) // 1000)
            for output in switch.inject(port, frame, timestamp_us=now_us):
                sent += self._put(output.port, output.data, time_ns)
            taken += 1
        return taken, sent

    def _in_order(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (time in ns, port, frame) of all input files by time, then by port."""
        files = (
            [(time_ns, port, frame) for time_ns, frame in packets] for port, packets in self._inputs.items()
        )
        return heapq.merge(*files, key=lambda packet: packet[:2])

    def _write(self, switch: Switch, time_ns: int | None) -> None:
        for output in switch.take_outputs():
            self._put(output.port, output.data, time_ns)

    def _put(self, port: int, frame: bytes, time_ns: int | None) -> int:
        """Write a frame to its port's file; returns 1, or 0 if the port has none."""
        if port not in self._outputs:
            return 0
        self._outputs[port].write(frame, time_ns)
        return 1
