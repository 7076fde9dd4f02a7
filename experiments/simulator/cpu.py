"""The CPU of the machine that an emulation runs on: host processes take turns on its cores.

A process that is woken waits for a core, then deals with all that has come to it meanwhile; what it does
shows when it is done. As with Linux, each core has a queue of its own: who finds no idle core waits in one of
the queues, and a core that has nothing to do takes from another's. So hosts come to lag behind each other by
milliseconds, and not always the same ones.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from experiments.simulator.events import Loop

Job = tuple[float, Callable[..., object], tuple[Any, ...]]
"""Seconds that it takes, and what it does."""


class Cpu:
    """So many cores; work takes longer by a random share, exponentially distributed with mean `slowdown`."""

    def __init__(self, loop: Loop, cores: int, slowdown: float, seed: int) -> None:
        self._loop, self._slowdown = loop, slowdown
        self._queues: list[deque[Process]] = [deque() for _ in range(cores)]
        self._idle = list(range(cores))
        self._draw = Random(seed)

    def wake(self, process: Process) -> None:
        """It has something to do."""
        if self._idle:
            self._run(self._idle.pop(), process)
        else:
            self._draw.choice(self._queues).append(process)

    def _run(self, core: int, process: Process) -> None:
        jobs = process.take()
        busy_s = process.wake_s + sum((cost_s for cost_s, _, _ in jobs), 0.0)
        if self._slowdown:
            busy_s *= 1 + self._draw.expovariate(1 / self._slowdown)
        self._loop.after(busy_s, self._done, core, process, jobs)

    def _done(self, core: int, process: Process, jobs: list[Job]) -> None:
        for _, action, arguments in jobs:
            action(*arguments)
        process.rest()
        waiting = next((queue for queue in (self._queues[core], *self._queues) if queue), None)
        if waiting is None:
            self._idle.append(core)
        else:
            self._run(core, waiting.popleft())


class Process:
    """It takes `wake_s` whenever it is woken; without a CPU what it does takes no time."""

    def __init__(self, cpu: Cpu | None, wake_s: float = 0.0) -> None:
        self.wake_s = wake_s
        self.free = cpu is None
        """What it does takes no time: whoever acts often may do so without asking."""
        self._cpu = cpu
        self._jobs: list[Job] = []
        self._awake = False

    def do(self, cost_s: float, action: Callable[..., object], *arguments: Any) -> None:
        """Call `action` when the process has come to it."""
        if self._cpu is None:
            action(*arguments)
            return
        self._jobs.append((cost_s, action, arguments))
        if not self._awake:
            self._awake = True
            self._cpu.wake(self)

    def take(self) -> list[Job]:
        """All that there is to do."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def rest(self) -> None:
        """Done; what came meanwhile is next."""
        self._awake = bool(self._jobs)
        if self._awake and self._cpu is not None:
            self._cpu.wake(self)


class Timers:
    """A host's timers go off at whole ticks: it begins late, and waits longer than it meant to."""

    def __init__(self, tick_s: float, seed: str) -> None:
        self._tick_s, self._draw, self._last_s = tick_s, Random(seed), 0.0

    def late_s(self, now_s: float) -> float:
        """For how long what should begin now still waits; nothing overtakes what was to begin before."""
        self._last_s = max(self._last_s, now_s + self._draw.uniform(0.0, self._tick_s))
        return self._last_s - now_s

    def beyond_s(self, duration_s: float) -> float:
        """By how much a wait takes longer."""
        return math.ceil(duration_s / self._tick_s) * self._tick_s - duration_s
