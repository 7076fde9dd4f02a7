"""Timeline of a run: bytes over each link, blocks by source, and the pool's contents.

The network counts the bytes over links. The rest are the processes' reports of each second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from commands.errors import ExperimentError
from emulator.processes import LineProcess
from topologies.running import RunningNetwork

PERIOD_S = 0.5
MAX_SAMPLES = 7200
"""Number of samples, an hour's; a longer run has no later ones."""

OnSample = Callable[["Sample"], None]
Progress = Callable[[], Mapping[str, Mapping[str, Any]]]
"""Function that returns the last progress line of each process, by its name."""


def progress_of(processes: Sequence[LineProcess]) -> Progress:
    """Return a function that returns the last progress of running processes."""
    return lambda: {process.name: process.progress for process in processes}


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters since the start of the run, at one time."""

    t_s: float
    link_bytes: dict[str, tuple[int, int]]
    """Bytes over each link "switch-peer": to the switch, and from it."""
    blocks: dict[str, int]
    """Blocks by source, summed over all nodes."""
    completed: int
    resident: int
    """Number of blocks in the pool."""
    hits: int
    admitted: int
    evicted: int
    digests: int
    outcomes: dict[str, int]
    """Packets by outcome, summed over all switches, without zeros (p4/include/metadata.p4)."""


@dataclass
class Timeline:
    """Background sampler of a network.

    Use it as a context manager: `samples` has those of its block, and the state at the end unless the block
    raises.
    """

    network: RunningNetwork
    progress: Progress
    on_sample: OnSample | None = None
    """Function called with each sample in the sampling thread, also after `samples` is full."""
    samples: list[Sample] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._from = self.network.link_bytes()
        self._started_s = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object, /) -> None:
        self._done.set()
        self._thread.join()
        if kind is None:
            self._take()

    def _run(self) -> None:
        while (self._has_room or self.on_sample) and not self._done.wait(PERIOD_S):
            try:
                self._take()
            except ExperimentError:  # a lost machine is reported by whoever waits for its processes
                return

    @property
    def _has_room(self) -> bool:
        return len(self.samples) < MAX_SAMPLES

    def _take(self) -> None:
        sample = self._sample()
        if self._has_room:
            self.samples.append(sample)
        if self.on_sample:
            self.on_sample(sample)

    def _sample(self) -> Sample:
        reports = self.progress()
        workers = [one for one in reports.values() if "completed" in one]
        blocks: dict[str, int] = {}
        for worker in workers:
            for source, count in worker["blocks"].items():
                blocks[source] = blocks.get(source, 0) + count
        controller = reports.get("controller", {})
        now = self.network.link_bytes()
        return Sample(
            t_s=round(time.monotonic() - self._started_s, 3),
            link_bytes={
                link: (now[link][0] - received, now[link][1] - sent)
                for link, (received, sent) in self._from.items()
                if link in now
            },
            blocks=blocks,
            completed=sum(worker["completed"] for worker in workers),
            **{name: int(controller.get(name, 0)) for name in _COUNTERS},
            outcomes=dict(controller.get("outcomes", {})),
        )


_COUNTERS = ("resident", "hits", "admitted", "evicted", "digests")
