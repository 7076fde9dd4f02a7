"""Process of an engine on the cables of a benchmark."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import psutil

from experiments.bench.switch.cables import Cables
from experiments.bench.switch.control import DEVICE_ID
from experiments.bench.switch.errors import BenchError
from topologies.engines import Engine
from topologies.process import Process

_LOG_TAIL_CHARACTERS: Final = 2000


class SwitchProcess:
    """Process of an engine. Port n + 1 is the engine's end of cable n.

    P4Runtime is served at a socket in `directory`, and the process logs to switch.log there. It ends with the
    cables' namespace.
    """

    def __init__(self, engine: Engine, cables: Cables, directory: Path, cpus: str) -> None:
        self._name, self._log = engine.name, directory / "switch.log"
        self.address = f"unix:{directory}/switch.sock"
        ports = [(number + 1, end) for number, end in enumerate(cables.engine_ends)]
        command = engine.command(DEVICE_ID, ports, self.address)
        with self._log.open("wb") as log:
            self.process = cables.engine.popen(
                command, cpus, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def log_tail(self) -> str:
        """Return the end of the process's log, at most 2,000 characters."""
        return self._log.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:].strip()

    def cpu_s(self) -> float:
        """Return the CPU seconds that the process has used so far; raises BenchError if it has ended."""
        return cpu_s(self.process, f"{self._name}: {self.log_tail()}")

    def resident_bytes(self) -> int:
        """Return the resident memory of the process in bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)


def cpu_s(process: Process, who: str) -> float:
    """Return the CPU seconds of a process; if it has ended, raises BenchError that begins with `who`."""
    if process.poll() is not None:
        raise BenchError(f"{who}: it ended during the measurement, with exit code {process.returncode}")
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)
