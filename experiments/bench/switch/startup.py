"""Costs of an engine before and beside forwarding: compiling, loading, writing entries, memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emulator.result import PROGRAM
from experiments.bench.switch.control import DEVICE_ID, connect
from experiments.bench.switch.engines import Switch
from experiments.bench.switch.workloads import BLOCKS, FRAGMENTS
from hostlib.protocol.wire import VALUE_BYTES
from topologies.engines import Artifacts, Engine
from topologies.process import end_process

CACHE_VARIABLE: Final = "WEIR_CACHE"


@dataclass(frozen=True, slots=True)
class ControlFigures:
    """Figures of one engine that are measured once a run. Cold means an empty cache of compiled programs."""

    compile_cold_s: float
    """Seconds of the command that compiles the P4 source to a device config."""
    compile_warm_s: float
    pipeline_cold_s: float
    """Seconds of P4Runtime's SetForwardingPipelineConfig."""
    pipeline_warm_s: float
    writes_per_s: float
    """Entries of the pool's table written a second, batched as the controller batches them."""
    resident_bytes: int
    """Memory of the switch's process with the program, all entries and a full pool."""
    register_bytes: int
    """Size of the program's registers, each value rounded up to whole bytes."""


def measure_control(running: Switch) -> ControlFigures:
    """Measure writes and memory of the running switch; compile and load in processes of their own."""
    engine = running.engine
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        directory = Path(name)
        with _empty_cache():
            artifacts, compile_cold_s = _compile(engine, directory)
            _, compile_warm_s = _compile(engine, directory)
        with _empty_cache():
            pipeline_cold_s = _load(engine, artifacts, directory)
            pipeline_warm_s = _load(engine, artifacts, directory)
    resident_bytes = running.resident_bytes()
    return ControlFigures(
        compile_cold_s=compile_cold_s,
        compile_warm_s=compile_warm_s,
        pipeline_cold_s=pipeline_cold_s,
        pipeline_warm_s=pipeline_warm_s,
        writes_per_s=running.control.writes_per_s(BLOCKS, FRAGMENTS),
        resident_bytes=resident_bytes,
        register_bytes=running.control.register_bytes(),
    )


def _compile(engine: Engine, directory: Path) -> tuple[Artifacts, float]:
    start = time.monotonic()
    artifacts = engine.compile(PROGRAM, {"VALUE_SIZE": VALUE_BYTES}, directory, in_full=False)
    return artifacts, time.monotonic() - start


def _load(engine: Engine, artifacts: Artifacts, directory: Path) -> float:
    """Return the seconds that loading the program into a newly started switch takes."""
    address, log = f"unix:{directory}/load.sock", directory / "load.log"
    with log.open("wb") as output:
        command = engine.command(DEVICE_ID, (), address)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        with connect(address, process, log.read_text) as control:
            return control.set_pipeline(artifacts)
    finally:
        end_process(process)
        (directory / "load.sock").unlink(missing_ok=True)


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Point WEIR_CACHE at an empty folder: processes started meanwhile find no compiled program."""
    before = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="weir-cache-") as name:
        os.environ[CACHE_VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[CACHE_VARIABLE]
            if before is not None:
                os.environ[CACHE_VARIABLE] = before
