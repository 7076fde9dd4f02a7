"""Measurement of how soon entries follow a list of digests, and how much longer a rested switch takes.

One embedded switch lies between two ends of a network, at which `entries` and `crossing` send and receive.
Its controller admits every block.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from controller.config import Config, PoolSize, Thresholds, config_text
from controller.p4runtime.base_state import DIGEST_TIMEOUT_NS
from emulator.processes import READY_TIMEOUT_S, Events, LineProcess, wait_for
from emulator.result import PROGRAM
from experiments.bench.switch.cables import Cables
from experiments.bench.switch.control import switch_config
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.switch_process import SwitchProcess
from experiments.bench.switch.workloads import CABLES, FRAGMENTS, STORE
from topologies.engines import Artifacts, make_engine
from v1model.binding.digests import longest_wait

SKETCH_CELLS: Final = 1 << 17
"""Number of cells of the sketch: so many that no block is taken for an earlier one."""
LIST_S: Final = longest_wait(DIGEST_TIMEOUT_NS / 1e9, inf)
"""Seconds that the first list after a pause waits."""
_ANY_CPU: Final = f"0-{(psutil.cpu_count() or 1) - 1}"


@dataclass(frozen=True, slots=True)
class Entries:
    """Delay of entries after a list of digests: medians, in milliseconds from when the list leaves."""

    digests: int
    first_ms: float
    last_ms: float


class Bench:
    """One switch, and a controller for each measurement; a context manager that needs root."""

    def __init__(self, directory: Path, pool_blocks: int) -> None:
        """Work in `directory`, with a pool of `pool_blocks` blocks."""
        self._directory = directory
        self._size = PoolSize(pool_blocks, pool_blocks * FRAGMENTS, FRAGMENTS)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Bench:
        with contextlib.ExitStack() as stack:
            self._cables = stack.enter_context(Cables(CABLES))
            engine = make_engine("embedded")
            sizes = self._size.defines | {"SKETCH_CELLS": SKETCH_CELLS}
            self._artifacts: Artifacts = engine.compile(PROGRAM, sizes, self._directory)
            self._switch = SwitchProcess(engine, self._cables, self._directory, _ANY_CPU)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def entries(self, rounds: int, sizes: Sequence[int]) -> list[Entries]:
        """Return how soon entries follow lists of each size; raises BenchError if half of them don't come."""
        return median_entries(self._run_sender("entries", rounds, *sizes), sizes)

    def rest_s(self, rounds: int) -> float:
        """Return how many seconds longer the first packet after a rest takes through the
        switch, as a median."""
        longer_s: list[float] = []
        for line in self._run_sender("crossing", rounds):
            rested_s, awake_s = json.loads(line)
            if rested_s is None or awake_s is None:
                raise BenchError("a request did not pass the switch")
            longer_s.append(rested_s - awake_s)
        return median(longer_s)

    def _run_sender(self, module: str, *numbers: int) -> list[str]:
        """Run the module that sends, beside a controller, and return the lines that it printed."""
        ends = self._cables.generator_ends
        command = [sys.executable, "-m", f"experiments.validate.control.{module}", ends[0], ends[STORE]]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self._controller():
            sender = self._cables.generator.popen([*command, *map(str, numbers)], _ANY_CPU, **pipes)
            output, complaint = sender.communicate()
        if sender.returncode:
            raise BenchError(f"the storage node ended: {complaint.decode().strip()}")
        return output.decode().splitlines()

    @contextlib.contextmanager
    def _controller(self) -> Iterator[None]:
        switch = replace(
            switch_config(self._size), grpc_address=self._switch.address,
            p4info=self._artifacts.p4info, device_config=self._artifacts.device_config,
        )  # fmt: skip
        thresholds = Thresholds(report_count=1, max_digests_per_s=1_000_000, eviction="drop")
        config = Config((switch,), "lru", merging=False, thresholds=thresholds)
        path = self._directory / "controller.json"
        path.write_text(config_text(config))
        events: Events = queue.SimpleQueue()
        command = [sys.executable, "-m", "controller", "--config", str(path)]
        controller = LineProcess(
            "controller", command, self._directory / "controller.log", subprocess.Popen, events
        )
        try:
            wait_for("ready", [controller], events, READY_TIMEOUT_S)
            yield
        finally:
            controller.process.kill()
            controller.process.wait()


def median_entries(lines: Iterable[str], sizes: Sequence[int]) -> list[Entries]:
    """Return the medians of what `entries` printed; an entry that did not come counts as infinitely late."""
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for line in lines:
        digests, *both_s = json.loads(line)
        first_s, last_s = (inf if entry_s is None else entry_s - LIST_S for entry_s in both_s)
        found[digests].append((first_s, last_s))
    medians = [
        Entries(size, 1000 * median(first for first, _ in each), 1000 * median(last for _, last in each))
        for size, each in found.items()
    ]
    if not all(isfinite(one.first_ms) and isfinite(one.last_ms) for one in medians):
        raise BenchError("half of the entries did not come: the machine is too busy")
    return medians
