"""Repeated runs: the one that stands for a mode, and the intervals of the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from emulator import disturbance
from emulator.result import RunResult

Figure = Callable[[RunResult], float]

FIGURES: Mapping[str, Figure] = {
    "get_p50_ms": lambda run: run.get_ms.p50,
    "get_p99_ms": lambda run: run.get_ms.p99,
    "ttft_p50_ms": lambda run: run.ttft_ms.p50,
    "ttft_p99_ms": lambda run: run.ttft_ms.p99,
    "storage_egress_bytes": lambda run: run.storage_egress_bytes,
    "switch_served_bytes": lambda run: run.switch_served_bytes,
    "pool_blocks": lambda run: run.blocks.pool,
    "merged": lambda run: run.merged,
}
"""Figures that get an interval."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """All runs by mode, in their order; at least one each."""

    runs: Mapping[str, tuple[RunResult, ...]]

    def all(self) -> Iterator[RunResult]:
        """Yield every run."""
        for runs in self.runs.values():
            yield from runs

    @property
    def count(self) -> int:
        """Return the number of runs of each mode."""
        return min(len(runs) for runs in self.runs.values())

    @property
    def overloaded(self) -> bool:
        """Return whether the machine failed to keep up in any run, or its control plane moved the medians."""
        return any(run.overloaded for run in self.all()) or bool(disturbance.complaints(self.runs))

    def complaints(self) -> list[str]:
        """Return the reasons, each once, with the mode."""
        reasons = [
            f"{name}: {text}" for name, runs in self.runs.items() for run in runs for text in run.complaints
        ]
        return list(dict.fromkeys(reasons + disturbance.complaints(self.runs)))

    def typical(self) -> dict[str, RunResult]:
        """Return for each mode the run whose median GET is the median over its runs."""
        return {
            name: sorted(runs, key=FIGURES["get_p50_ms"])[(len(runs) - 1) // 2]
            for name, runs in self.runs.items()
        }

    def intervals(self) -> dict[str, dict[str, Interval]]:
        """Return the intervals by mode and figure."""
        return {
            name: {label: mean_interval([figure(run) for run in runs]) for label, figure in FIGURES.items()}
            for name, runs in self.runs.items()
        }

    def differences(self, mode: str, base: str) -> dict[str, Interval]:
        """Return by how much `mode` is above `base`, by figure, over pairs of consecutive runs."""
        return {
            label: mean_interval(
                [
                    figure(one) - figure(other)
                    for one, other in zip(self.runs[mode], self.runs[base], strict=True)
                ]
            )
            for label, figure in FIGURES.items()
        }
