"""The measurement: the same bursts of values through a switch with its reports off and on.

What the controller and the switch's process need more with reports on, divided by the digests, is what one
digest costs from the forwarding thread's event to the entry in the table: gathering, gRPC and protobuf on
both sides, the policy, removal of a block that gives way, installation, and reading the hit counters.
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
from typing import Any, Final

import psutil

from controller.config import Config, PoolSize, Thresholds, config_text
from controller.p4runtime.base_state import DIGEST_TIMEOUT_NS
from emulator.processes import READY_TIMEOUT_S, Events, LineProcess, ask, wait_for
from emulator.result import PROGRAM
from experiments.bench.switch.cables import Cables
from experiments.bench.switch.control import switch_config
from experiments.bench.switch.errors import BenchError
from experiments.bench.switch.switch_process import SwitchProcess, cpu_s
from experiments.bench.switch.workloads import CABLES, FRAGMENTS, STORE
from topologies.engines import Artifacts, make_engine
from v1model.binding.digests import longest_wait

POOL_BLOCKS: Final = 256
"""Fewer than are admitted: nearly every admission has another block removed."""
SKETCH_CELLS: Final = 1 << 17
"""Many: no block should be taken for one of those before it."""
_ANY_CPU: Final = f"0-{(psutil.cpu_count() or 1) - 1}"
_LEAST_REPORTED: Final = 0.95
"""Of the blocks: the sketch may take one for another, and report it later."""
LIST_S: Final = longest_wait(DIGEST_TIMEOUT_NS / 1e9, inf)
"""How long the first list after a pause waits."""
_LINE_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Bursts:
    """The traffic."""

    blocks: int = 2000
    burst: int = 20
    bursts_per_s: float = 20.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time of one round, in microseconds a digest."""

    digests: int
    writes: int
    updates: int
    controller_us: float
    switch_us: float

    @property
    def total_us(self) -> float:
        """Return the sum of both, in microseconds."""
        return self.controller_us + self.switch_us


@dataclass(frozen=True, slots=True)
class Entries:
    """How soon entries follow a list of digests: medians, in milliseconds from when the list leaves."""

    digests: int
    first_ms: float
    last_ms: float


class Bench:
    """One switch, and a controller for each half of a round. Use as a context manager; needs root."""

    def __init__(self, directory: Path, policy: str, pool_blocks: int = POOL_BLOCKS) -> None:
        self._directory, self._policy, self._pool_blocks = directory, policy, pool_blocks
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Bench:
        with contextlib.ExitStack() as stack:
            self._cables = stack.enter_context(Cables(CABLES))
            engine = make_engine("embedded")
            sizes = self._pool_size.defines | {"SKETCH_CELLS": SKETCH_CELLS}
            self._artifacts: Artifacts = engine.compile(PROGRAM, sizes, self._directory)
            self._switch = SwitchProcess(engine, self._cables, self._directory, _ANY_CPU)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def round(self, bursts: Bursts) -> Cost:
        """Measure both halves; raises BenchError if not every block was reported and admitted."""
        quiet = self._half(replace(bursts, seed=2 * bursts.seed), False)
        reported = self._half(replace(bursts, seed=2 * bursts.seed + 1), True)
        told = reported.results
        digests, admitted = told["digests"], told["admitted"]
        if min(digests, admitted) < _LEAST_REPORTED * bursts.blocks:
            raise BenchError(
                f"{bursts.blocks} blocks were sent, but {digests} reported and {admitted} admitted: the "
                f"machine is too busy for {bursts.bursts_per_s:g} bursts a second, or POLICY refused them"
            )
        return Cost(
            digests, told["p4runtime_writes"], told["p4runtime_updates"],
            1e6 * (reported.controller_s - quiet.controller_s) / digests,
            1e6 * (reported.switch_s - quiet.switch_s) / digests,
        )  # fmt: skip

    def entries(self, rounds: int, sizes: Sequence[int]) -> list[Entries]:
        """How soon entries follow a list of so many digests; raises BenchError if half of them don't come."""
        ends = self._cables.generator_ends
        told = (ends[0], ends[STORE], str(rounds), *map(str, sizes))
        with self._controller(True):
            said = self._say("experiments.bench.control.entries", *told)
        return entries_told(said.splitlines(), sizes)

    def rest_s(self, rounds: int) -> float:
        """Return how much longer the first packet after a rest takes through the switch: the median."""
        ends = self._cables.generator_ends
        with self._controller(True):
            said = self._say("experiments.bench.control.crossing", ends[0], ends[STORE], str(rounds))
        longer_s: list[float] = []
        for line in said.splitlines():
            rested_s, awake_s = json.loads(line)
            if rested_s is None or awake_s is None:
                raise BenchError("a request did not pass the switch")
            longer_s.append(rested_s - awake_s)
        return median(longer_s)

    def _half(self, bursts: Bursts, pool: bool) -> _Half:
        with self._controller(pool) as controller:
            before = self._switch.cpu_s(), cpu_s(controller.process, "the controller")
            self._send(bursts)
            for _ in range(2):  # what is on its way arrives; both halves take as long
                _next(controller, "progress")
            switch_s, controller_s = self._switch.cpu_s(), cpu_s(controller.process, "the controller")
            results = ask(controller, _LINE_TIMEOUT_S)
            controller.stop()
        return _Half(results, switch_s - before[0], controller_s - before[1])

    def _send(self, bursts: Bursts) -> None:
        interface = self._cables.generator_ends[STORE]
        numbers = (bursts.seed, bursts.blocks, bursts.burst, bursts.bursts_per_s)
        self._say("experiments.bench.control.bursts", interface, *map(str, numbers))

    def _say(self, module: str, *arguments: str) -> str:
        """Run what sends; what it printed."""
        command = [sys.executable, "-m", module, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        sender = self._cables.generator.popen(command, _ANY_CPU, **pipes)
        said, complaint = sender.communicate()
        if sender.returncode:
            raise BenchError(f"the storage node ended: {complaint.decode().strip()}")
        return said.decode()

    @property
    def _pool_size(self) -> PoolSize:
        return PoolSize(self._pool_blocks, self._pool_blocks * FRAGMENTS, FRAGMENTS)

    @contextlib.contextmanager
    def _controller(self, pool: bool) -> Iterator[LineProcess]:
        size = self._pool_size
        switch = replace(
            switch_config(size), grpc_address=self._switch.address,
            p4info=self._artifacts.p4info, device_config=self._artifacts.device_config,
        )  # fmt: skip
        thresholds = Thresholds(report_count=1, max_digests_per_s=1_000_000, eviction="drop")
        config = Config((switch,), self._policy, pool=pool, merging=False, thresholds=thresholds)
        path = self._directory / "controller.json"
        path.write_text(config_text(config))
        events: Events = queue.SimpleQueue()
        command = [sys.executable, "-m", "controller", "--config", str(path)]
        controller = LineProcess(
            "controller", command, self._directory / "controller.log", subprocess.Popen, events
        )
        try:
            wait_for("ready", [controller], events, READY_TIMEOUT_S)
            yield controller
        finally:
            controller.process.kill()
            controller.process.wait()


@dataclass(frozen=True, slots=True)
class _Half:
    results: dict[str, Any]
    switch_s: float
    controller_s: float


def _next(controller: LineProcess, event: str) -> None:
    """Until it says something of this kind again."""
    with contextlib.suppress(queue.Empty):
        while True:
            controller.events.get_nowait()
    wait_for(event, [controller], controller.events, _LINE_TIMEOUT_S)


def entries_told(lines: Iterable[str], sizes: Sequence[int]) -> list[Entries]:
    """Medians of what `experiments.bench.control.entries` printed; an entry that did not come is later than
    any."""
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for line in lines:
        digests, *both_s = json.loads(line)
        first_s, last_s = (inf if entry_s is None else entry_s - LIST_S for entry_s in both_s)
        found[digests].append((first_s, last_s))
    told = [
        Entries(size, 1000 * median(first for first, _ in each), 1000 * median(last for _, last in each))
        for size, each in found.items()
    ]
    if not all(isfinite(one.first_ms) and isfinite(one.last_ms) for one in told):
        raise BenchError("half of the entries did not come: the machine is too busy, or POLICY refused them")
    return told
