"""CPU of the machine that an emulation runs on; host processes take turns on its cores.

A process that is woken waits for a core, then handles all that has arrived meanwhile. Its effects show when
it is done. As in Linux, each core has a queue of its own. A process that finds no idle core waits in one of
the queues, and a core without work takes from another's queue. Hosts therefore lag behind each other by
milliseconds, and not always the same ones.

A resting process loses its place in the caches, so its first wake-ups after a rest take longer.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from simulator.events import Loop

Job = tuple[float, Callable[..., object], tuple[Any, ...]]
"""CPU seconds, function and its arguments."""


@dataclass(frozen=True, slots=True)
class Cold:
    """Extra time of the first wake-ups after a rest: 1 - exp(-t / rest_s) of the largest, after a rest of
    t."""

    wakes_s: tuple[float, ...] = ()
    """Largest extra seconds of the first wake-up, the second and so on: each runs other code."""
    rest_s: float = 0.0

    def share(self, rested_s: float) -> float:
        """Return the share of the largest extra time after a rest of `rested_s`."""
        return 1 - math.exp(-rested_s / self.rest_s) if self.rest_s else 0.0


WARM = Cold()


class Cpu:
    """Cores of the machine; work takes longer by a random share, exponential with mean `slowdown`."""

    def __init__(self, loop: Loop, cores: int, slowdown: float, seed: int) -> None:
        self._loop, self._slowdown = loop, slowdown
        self._queues: list[deque[Process]] = [deque() for _ in range(cores)]
        self._idle = list(range(cores))
        self._draw = Random(seed)

    def wake(self, process: Process) -> None:
        """Let a core run a process that has something to do."""
        if self._idle:
            self._run(self._idle.pop(), process)
        else:
            self._draw.choice(self._queues).append(process)

    def _run(self, core: int, process: Process) -> None:
        jobs = process.take()
        busy_s = process.wake_up_s(self._loop.now) + sum((cost_s for cost_s, _, _ in jobs), 0.0)
        if self._slowdown:
            busy_s *= 1 + self._draw.expovariate(1 / self._slowdown)
        self._loop.after(busy_s, self._done, core, process, jobs)

    def _done(self, core: int, process: Process, jobs: list[Job]) -> None:
        for _, action, arguments in jobs:
            action(*arguments)
        process.rest(self._loop.now)
        waiting = next((queue for queue in (self._queues[core], *self._queues) if queue), None)
        if waiting is None:
            self._idle.append(core)
        else:
            self._run(core, waiting.popleft())


class Process:
    """Process that takes `wake_s` whenever it is woken; without a CPU its work takes no time."""

    def __init__(self, cpu: Cpu | None, wake_s: float = 0.0, cold: Cold = WARM) -> None:
        self._wake_s, self._cold = wake_s, cold
        self._left: deque[float] = deque()
        """Extra seconds of the wake-ups that are still to come since the last rest."""
        self._share = 0.0
        """Share of the extra time that this rest causes."""
        self._ran_s = 0.0
        self.free = cpu is None
        """Whether its work takes no time; frequent callers may then act without calling `do`."""
        self._cpu = cpu
        self._jobs: list[Job] = []
        self._awake = False

    def do(self, cost_s: float, action: Callable[..., object], *arguments: Any) -> None:
        """Call `action` once the process has reached it."""
        if self._cpu is None:
            action(*arguments)
            return
        self._jobs.append((cost_s, action, arguments))
        if not self._awake:
            self._awake = True
            self._cpu.wake(self)

    def take(self) -> list[Job]:
        """Return all jobs, and forget them."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def wake_up_s(self, now_s: float) -> float:
        """Return the seconds that waking up takes, besides the jobs."""
        share = self._cold.share(now_s - self._ran_s)
        if share > self._share:  # this rest left it colder than it still was
            self._share, self._left = share, deque(self._cold.wakes_s)
        if not self._left:
            return self._wake_s
        longer_s = self._share * self._left.popleft()
        if not self._left:
            self._share = 0.0
        return self._wake_s + longer_s

    def rest(self, now_s: float) -> None:
        """End the run; wake the process again if jobs have come meanwhile."""
        self._ran_s = now_s
        self._awake = bool(self._jobs)
        if self._awake and self._cpu is not None:
            self._cpu.wake(self)


class Timers:
    """Timers of a host, which go off at whole ticks: work begins late, and waits take longer than asked."""

    def __init__(self, tick_s: float, seed: str) -> None:
        self._tick_s, self._draw, self._last_s = tick_s, Random(seed), 0.0

    def late_s(self, now_s: float) -> float:
        """Return for how many seconds work that should begin now still waits; it never overtakes earlier
        work."""
        self._last_s = max(self._last_s, now_s + self._draw.uniform(0.0, self._tick_s))
        return self._last_s - now_s

    def beyond_s(self, duration_s: float) -> float:
        """Return by how many seconds a wait takes longer."""
        return math.ceil(duration_s / self._tick_s) * self._tick_s - duration_s
