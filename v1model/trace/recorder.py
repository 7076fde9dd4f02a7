"""Recorder of a running switch's traces to a file, and of its packets to pcap files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from v1model.backend import Tracing
from v1model.trace.events import TraceFilter
from v1model.trace.formats import as_json, as_text
from v1model.trace.pcap import PcapFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from v1model.switch import Switch
    from v1model.trace.events import TraceEvent

STANDARD_ERROR = "-"


@dataclass(frozen=True, slots=True)
class Recording:
    """Settings of a recording.

    `trace` is a file, `-` for standard error, or "" for none. `pcap` is a folder for INTERFACE_in.pcap and
    INTERFACE_out.pcap, named as by simple_switch.
    """

    trace: str = ""
    as_json: bool = False
    assignments: bool = False
    wanted: TraceFilter = field(default_factory=TraceFilter)
    pcap: Path | None = None

    def tracing(self) -> Tracing:
        """Return how programs are to be compiled."""
        if self.trace:
            return Tracing.ASSIGNMENTS if self.assignments else Tracing.STEPS
        return Tracing.FRAMES if self.pcap else Tracing.OFF


class Recorder:
    """Recorder that opens its files and follows the last switch given to `follow`. Raises OSError."""

    def __init__(self, recording: Recording, ports: Mapping[int, str]) -> None:
        self.tracing = recording.tracing()
        self._recording = recording
        self._format = as_json if recording.as_json else as_text
        self._trace: TextIO | None = None
        self._pcaps: dict[tuple[str, int], PcapFile] = {}
        if recording.trace:
            wants_stderr = recording.trace == STANDARD_ERROR
            self._trace = sys.stderr if wants_stderr else open(recording.trace, "w")  # noqa: SIM115, PTH123
        if recording.pcap:
            recording.pcap.mkdir(parents=True, exist_ok=True)
            for port, interface in ports.items():
                for kind, suffix in (("received", "in"), ("sent", "out")):
                    self._pcaps[kind, port] = PcapFile(recording.pcap / f"{interface}_{suffix}.pcap")

    def follow(self, switch: Switch) -> None:
        if self.tracing is not Tracing.OFF:
            switch.trace(self._recording.wanted, self._take)

    def close(self) -> None:
        for pcap in self._pcaps.values():
            pcap.close()
        if self._trace is not None and self._trace is not sys.stderr:
            self._trace.close()

    def _take(self, event: TraceEvent) -> None:
        port, frame = event.values.get("port"), event.values.get("frame")
        if isinstance(port, int) and isinstance(frame, bytes):
            pcap = self._pcaps.get((event.kind, port))
            if pcap is not None:
                pcap.write(frame)
        if self._trace is not None:
            print(self._format(event), file=self._trace, flush=True)
