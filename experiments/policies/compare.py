"""Comparison of the reuse-value policy with the best baselines and with Belady."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.policies.pools import BELADY
from experiments.policies.replay import Result

OURS = "reuse"
MEASURES = ("saved_s", "block_hit", "prefix_hit", "saved_prefill_s", "saved_transfer_s")
TOLERANCE = 0.02
"""Largest share by which the policy may be below the best baseline of a trace and size."""


@dataclass(frozen=True)
class Comparison:
    """One measure of one trace and pool size: the policy's value, the best
    online baseline's, and Belady's."""

    trace: str
    blocks: int
    measure: str
    ours: float
    best: float
    best_policy: str
    bound: float | None

    @property
    def lead(self) -> float:
        """Return the policy's value over the best baseline's, less 1; 0 if the baseline has 0."""
        return self.ours / self.best - 1.0 if self.best else 0.0

    @property
    def closed(self) -> float | None:
        """Return the share of the distance from the best baseline to Belady that the policy closes.

        None if Belady was not replayed or is no better than the baseline.
        """
        if self.bound is None or self.bound <= self.best:
            return None
        return (self.ours - self.best) / (self.bound - self.best)


def compare(trace: str, results: Iterable[Result]) -> list[Comparison]:
    """Return all measures at all sizes; sizes without the policy, or without baselines, are left out."""
    by_size: dict[int, dict[str, Result]] = {}
    for result in results:
        by_size.setdefault(result.blocks, {})[result.policy] = result
    return [
        _one(trace, blocks, measure, policies)
        for blocks, policies in sorted(by_size.items())
        if OURS in policies and policies.keys() - {OURS, BELADY}
        for measure in MEASURES
    ]


def misses_target(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons in which the policy is more than TOLERANCE below the best baseline."""
    return [comparison for comparison in comparisons if comparison.lead < -TOLERANCE]


def _one(trace: str, blocks: int, measure: str, policies: dict[str, Result]) -> Comparison:
    values = {name: float(getattr(result, measure)) for name, result in policies.items()}
    online = {name: value for name, value in values.items() if name not in (OURS, BELADY)}
    best = max(online, key=lambda name: online[name])
    return Comparison(trace, blocks, measure, values[OURS], online[best], best, values.get(BELADY))
