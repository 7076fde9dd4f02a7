"""Whether the machine kept up: a scale model is only true while it does."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

SAMPLE_PERIOD_S = 0.5

# What a run may show and still count. Emulated times are milliseconds: a host that wakes 25 ms late
# adds that to a GET; a machine that is busy to the last tenth delays everything by some.
MOST_CPU_SHARE = 0.9
MOST_BUSY_SAMPLES = 0.1
MOST_LATE_P99_MS = 25.0


class CpuWatch:
    """Samples the machine's CPU in the background, from start() to stop()."""

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        psutil.cpu_percent()
        self._thread.start()

    def stop(self) -> CpuUse:
        """End sampling; what was seen."""
        self._done.set()
        self._thread.join()
        if not self._samples:
            return CpuUse()
        busy = sum(sample > MOST_CPU_SHARE for sample in self._samples)
        return CpuUse(sum(self._samples) / len(self._samples), busy / len(self._samples))

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_PERIOD_S):
            self._samples.append(psutil.cpu_percent() / 100)


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Mean share of all cores in use, and the share of samples in which next to nothing was left."""

    mean: float = 0.0
    saturated: float = 0.0


@dataclass(frozen=True, slots=True)
class Strain:
    """What a run did to the machine."""

    cpu: CpuUse
    late_p99_ms: Mapping[str, float]
    """Lateness of timers by process."""
    dropped: Mapping[str, int]
    """Packets lost anywhere but in a modelled link, by place."""

    def complaints(self) -> list[str]:
        """Why the figures don't count; empty when they do."""
        found = []
        if self.cpu.saturated > MOST_BUSY_SAMPLES:
            found.append(
                f"CPU: over {MOST_CPU_SHARE:.0%} busy in {self.cpu.saturated:.0%} of the time "
                f"(at most {MOST_BUSY_SAMPLES:.0%})"
            )
        late = {name: ms for name, ms in self.late_p99_ms.items() if ms > MOST_LATE_P99_MS}
        if late:
            worst = max(late, key=late.__getitem__)
            found.append(
                f"timers: {len(late)} processes woke late, {worst} by {late[worst]:.0f} ms at p99 "
                f"(at most {MOST_LATE_P99_MS:g} ms)"
            )
        found += [f"drops: {count} packets {place}" for place, count in self.dropped.items() if count]
        return found


ADVICE = "Use a larger SCALE (fewer packets), fewer HOSTS or a smaller SPEED, or end other work here."
