"""What a run looked like while it went: bytes over each link, blocks by source, the pool's contents.

Links are counted by the network, the rest is what processes say of themselves each second.
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
"""An hour of them; a longer run is seen up to there."""

OnSample = Callable[["Sample"], None]
Progress = Callable[[], Mapping[str, Mapping[str, Any]]]
"""The last progress line of each process, by its name."""


def progress_of(processes: Sequence[LineProcess]) -> Progress:
    """Return what running processes say of themselves."""
    return lambda: {process.name: process.progress for process in processes}


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters since the start of the run, at one time of it."""

    t_s: float
    link_bytes: dict[str, tuple[int, int]]
    """By link, "switch-peer": bytes to the switch and from it."""
    blocks: dict[str, int]
    """By source, over all nodes."""
    completed: int
    resident: int
    """Blocks in the pool."""
    hits: int
    admitted: int
    evicted: int
    digests: int
    outcomes: dict[str, int]
    """Packets by outcome, over all switches, without the zeros (p4/include/metadata.p4)."""


@dataclass
class Timeline:
    """Samples a network in the background. Use it as a context manager: `samples` has what was seen inside,
    and the state at its end unless the inside raises."""

    network: RunningNetwork
    progress: Progress
    on_sample: OnSample | None = None
    """Called with each, in the thread that samples, also when no more are kept."""
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
            except ExperimentError:  # a machine was lost, which whoever waits for its processes says
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
        said = self.progress()
        workers = [one for one in said.values() if "completed" in one]
        blocks: dict[str, int] = {}
        for worker in workers:
            for source, count in worker["blocks"].items():
                blocks[source] = blocks.get(source, 0) + count
        controller = said.get("controller", {})
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
