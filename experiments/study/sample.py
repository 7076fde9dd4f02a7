"""Figures of a point with several seeds, the same for every system: differences are taken in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commands.intervals import Interval, mean_interval
from experiments.study.results import Figures
from scenario import Scenario

LEAST_DIFFERENCE = 0.0005
"""Share below which a difference does not count, however certain it is."""
SAME_SHARE = 0.005
"""Share below which a difference is too small to buy anything for."""
TTFT = "ttft_s"
MEAN = (TTFT, "mean")
P50 = (TTFT, "p50")
P99 = (TTFT, "p99")
START = ("start_ttft_s", "mean")
STEADY = ("steady_ttft_s", "mean")
STEADY_P99 = ("steady_ttft_s", "p99")


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures by seed, in the order of the seeds."""

    runs: tuple[Figures, ...]

    def values(self, path: Sequence[str]) -> list[float]:
        """Return one figure of each run, such as ("ttft_s", "mean")."""
        return [figure(run, path) for run in self.runs]

    def mean(self, *path: str) -> float:
        """Return the mean over the seeds."""
        return sum(self.values(path)) / len(self.runs)

    def interval(self, *path: str) -> Interval:
        """Return the 95 % interval of a figure; infinite with one seed."""
        return mean_interval(self.values(path))

    @property
    def cost(self) -> float:
        """Return the cost of the cache in dollars an hour: hardware, so the same with every seed."""
        cost: float = self.runs[0]["cache_dollars_per_hour"]
        return cost

    @property
    def total_cost(self) -> float:
        """Return the cost of everything in dollars an hour."""
        cost: float = self.runs[0]["dollars_per_hour"]
        return cost

    @property
    def start_wait_s(self) -> Interval:
        """Return the seconds that the first half of the requests waits beyond the second
        half's mean, in all."""
        waits = []
        for run in self.runs:
            extra_s = figure(run, START) - figure(run, STEADY)
            waits.append(extra_s * (run["completed"] // 2))
        return mean_interval(waits)


def figure(run: Figures, path: Sequence[str]) -> float:
    """Return the figure that the names in `path` lead to."""
    found = run
    for name in path:
        found = found[name]
    return float(found)  # type: ignore[arg-type]


def ratio(sample: Sample, reference: Sample, *path: str) -> Interval:
    """Return the interval of one figure over the reference's, seed by seed."""
    pairs = zip(sample.values(path), reference.values(path), strict=True)
    return mean_interval([one / other if other else 1.0 for one, other in pairs])


def significantly_lower(sample: Sample, reference: Sample, *path: str) -> bool:
    """Return whether a figure is significantly lower than the reference's, and by LEAST_DIFFERENCE at least.

    The whole interval of the ratio must lie below 1, and the mean of the figure must be lower too.
    """
    change = ratio(sample, reference, *path)
    significant = change.high < 1 and change.mean <= 1 - LEAST_DIFFERENCE
    return significant and sample.mean(*path) < reference.mean(*path)


def seeded(scenario: Scenario, seed: int) -> Scenario:
    """Return a scenario with that seed."""
    return scenario.changed(workload={"seed": seed})
