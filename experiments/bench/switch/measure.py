"""One engine under one workload: overload, the highest rate without loss, latency at half of that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from experiments.bench.switch.engines import Contender
from experiments.bench.switch.load import LoadGenerator, Trial
from experiments.bench.switch.search import highest_lossless
from experiments.bench.switch.workloads import Workload

AS_FAST_AS_POSSIBLE: Final = 0
MOST_PER_S: Final = 2_000_000
_TRIES: Final = 2
"""A rate counts as passed if it passes once: whatever else runs on the machine can only make it fail."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Frames a second that nodes send and that are answered."""

    lossless_per_s: float
    overload_per_s: float
    """Answered while the generator sends as fast as it can."""
    offered_per_s: float
    """What it sent then."""
    engine_busy: float
    """Cores that the engine used then, with what it still did after the last request."""
    p50_us: float
    p99_us: float
    generator_limited: bool
    """The generator could not send more than the highest rate, so the engine may be faster."""


class Bench:
    """Measures at one contender's cables."""

    def __init__(self, contender: Contender, cpus: str, seconds: float, plans: dict[str, Path]) -> None:
        self.contender = contender
        self._generator = LoadGenerator(contender.cables, cpus)
        self._seconds, self._plans = seconds, plans

    def measure(self, workload: Workload, show: Callable[[str], None]) -> Measurement:
        """Measure all figures of one workload; `show` is told what is being done."""
        self.contender.prepare(workload)
        show("overload")
        busy_s = self.contender.cpu_s()
        overload = self._run(workload, AS_FAST_AS_POSSIBLE)
        busy_s = self.contender.cpu_s() - busy_s
        limited = False

        def passes(rate_per_s: int) -> bool:
            nonlocal limited
            for _ in range(_TRIES):
                show(f"{rate_per_s:,}/s")
                trial = self._run(workload, rate_per_s)
                if trial.lossless and trial.kept_rate:
                    return True
            limited = trial.lossless
            return False

        lossless_per_s = highest_lossless(passes, round(overload.answered_per_s), MOST_PER_S)
        show("latency")
        half = self._run(workload, max(1, lossless_per_s // 2))
        self.contender.cpu_s()  # it still runs
        return Measurement(
            lossless_per_s=lossless_per_s,
            overload_per_s=overload.answered_per_s,
            offered_per_s=overload.sent_per_s,
            engine_busy=busy_s / self._seconds,
            p50_us=half.p50_us if half.answered else math.nan,
            p99_us=half.p99_us if half.answered else math.nan,
            generator_limited=limited,
        )

    def _run(self, workload: Workload, rate_per_s: int) -> Trial:
        return self._generator.run(self._plans[workload.name], workload.cables, rate_per_s, self._seconds)
