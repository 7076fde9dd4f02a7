"""Engines under load: a bare echo, and switches that run the pool's program."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from emulator.result import PROGRAM
from experiments.bench.switch import native_programs
from experiments.bench.switch.cables import Cables
from experiments.bench.switch.control import Control, connect
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.load import LoadGenerator
from experiments.bench.switch.plan import encode
from experiments.bench.switch.switch_process import SwitchProcess, cpu_s
from experiments.bench.switch.workloads import (
    BLOCKS,
    CABLES,
    FRAGMENTS,
    STORE,
    Workload,
    fill_plan,
)
from hostlib.protocol.wire import VALUE_BYTES
from topologies.engines import Artifacts, Engine
from topologies.process import end_process

ECHO: Final = "echo"
ECHO_BUFFER_BYTES: Final = 4 << 20
_FILL_PER_S: Final = (65536, 32768, 16384, 8192, 4096, *[8192] * 10)
"""Frames a second, in the order in which the rates are tried until the pool is full.

Rates fall, for engines that lose frames; then one is repeated, for a machine that pauses. A slot keeps the
value that it has.
"""


class Contender(Protocol):
    """Engine under load, as the benchmark measures it."""

    name: str
    cables: Cables

    def prepare(self, workload: Workload) -> None:
        """Make the engine ready for a workload."""

    def cpu_s(self) -> float:
        """Return the CPU seconds that its process has used so far; raises BenchError if it has ended."""


class Echo:
    """Program that moves the same frames as a switch would, without looking at them."""

    name = ECHO

    def __init__(self, cpus: str) -> None:
        self._cpus = cpus
        self._stack = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Echo:
        self.cables = self._stack.enter_context(Cables(CABLES))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prepare(self, workload: Workload) -> None:
        """Restart the program with the rules of the workload."""
        ends = [self.cables.engine_ends[cable] for cable in workload.cables]
        self.restart(workload.echo_rules, ends)

    def restart(self, rules: Sequence[str], ends: Sequence[str]) -> None:
        """Restart the program with these rules (native/echo.c) at these interfaces. Raises BenchError."""
        if self._process is not None:
            end_process(self._process)
        command = [str(native_programs.program("echo")), str(ECHO_BUFFER_BYTES), *rules, "--", *ends]
        self._process = self.cables.engine.popen(
            command, self._cpus, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._process.stdout.readline().strip() != b"ready":
            raise BenchError(f"echo: {self._process.stderr.read().decode().strip()}")

    def cpu_s(self) -> float:
        """Return the CPU seconds that the present process has used; raises BenchError if it has ended."""
        assert self._process is not None  # `prepare` was called before
        return cpu_s(self._process, "echo")


class Switch:
    """Switch engine with the pool's program, all its entries and a full pool. It works in `directory`."""

    def __init__(self, engine: Engine, directory: Path, cpus: str, generator_cpus: str) -> None:
        self.name, self.directory = engine.name, directory
        self.engine, self._cpus, self._generator_cpus = engine, cpus, generator_cpus
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Switch:
        with contextlib.ExitStack() as stack:
            self.cables = stack.enter_context(Cables(CABLES))
            self.artifacts: Artifacts = self.engine.compile(
                PROGRAM, {"VALUE_SIZE": VALUE_BYTES}, self.directory
            )
            self.process = SwitchProcess(self.engine, self.cables, self.directory, self._cpus)
            connection = connect(self.process.address, self.process.process, self.process.log_tail)
            self.control: Control = stack.enter_context(connection)
            self.pipeline_s = self.control.set_pipeline(self.artifacts)
            self.control.install_base_state()
            self.control.install_blocks(BLOCKS, FRAGMENTS)
            self._fill()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _fill(self) -> None:
        """Send requests for all values, and the values, until each slot holds its own. Raises BenchError."""
        generator = LoadGenerator(self.cables, self._generator_cpus)
        values = self.directory / "fill.plan"
        values.write_bytes(encode(fill_plan()))
        for rate_per_s in _FILL_PER_S:
            generator.run(values, (0, STORE), rate_per_s, 2 * BLOCKS * FRAGMENTS / rate_per_s)
            filled = self.control.fills()
            if filled == BLOCKS * FRAGMENTS:
                return
        raise BenchError(f"{self.name}: only {filled} of {BLOCKS * FRAGMENTS} slots took their value")

    def prepare(self, workload: Workload) -> None:
        """Do nothing: all workloads run on the same entries."""

    def cpu_s(self) -> float:
        """Return the CPU seconds that the switch's process has used; raises BenchError if it has ended."""
        return self.process.cpu_s()

    def resident_bytes(self) -> int:
        """Return the resident memory of the switch's process in bytes."""
        return self.process.resident_bytes()
