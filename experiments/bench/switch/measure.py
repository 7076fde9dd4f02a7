"""Measurement of one engine under one workload: overload, rate without loss, latency at half that rate."""

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
"""Number of trials of a rate. One that passes is enough: other programs can only make a trial fail."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of one engine under one workload. Rates are frames a second that are answered."""

    lossless_per_s: float
    overload_per_s: float
    """Frames a second that are answered while the generator sends as fast as it can."""
    offered_per_s: float
    """Frames a second that the generator sent then."""
    engine_busy: float
    """Number of cores that the engine used then, with its work after the last request."""
    p50_us: float
    p99_us: float
    generator_limited: bool
    """Whether the generator could not send more than the highest rate, so that the engine may be faster."""


class Bench:
    """Measurement at one contender's cables."""

    def __init__(self, contender: Contender, cpus: str, seconds: float, plans: dict[str, Path]) -> None:
        self.contender = contender
        self._generator = LoadGenerator(contender.cables, cpus)
        self._seconds, self._plans = seconds, plans

    def measure(self, workload: Workload, show: Callable[[str], None]) -> Measurement:
        """Measure all figures of one workload; calls `show` with what is being done. Raises BenchError."""
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
                if trial.lossless and trial.sent_at_rate:
                    return True
            limited = trial.lossless
            return False

        lossless_per_s = highest_lossless(passes, round(overload.answered_per_s), MOST_PER_S)
        show("latency")
        half = self._run(workload, max(1, lossless_per_s // 2))
        self.contender.cpu_s()  # raises BenchError if the engine has ended
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
