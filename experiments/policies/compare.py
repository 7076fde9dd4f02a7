"""What the results say: the best baselines, how far the reuse-value policy is from them and from Belady."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.policies.pools import BELADY
from experiments.policies.replay import Result

OURS = "reuse"
MEASURES = ("saved_s", "block_hit", "prefix_hit", "saved_prefill_s", "saved_transfer_s")
TOLERANCE = 0.02
"""How far below the best baseline of a trace and size the policy may be at most."""


@dataclass(frozen=True)
class Comparison:
    """One measure of one trace and size: ours, the best online baseline, and the bound."""

    trace: str
    blocks: int
    measure: str
    ours: float
    best: float
    best_policy: str
    bound: float | None

    @property
    def lead(self) -> float:
        """Ours over the best baseline, less one."""
        return self.ours / self.best - 1.0 if self.best else 0.0

    @property
    def closed(self) -> float | None:
        """Part of the distance from the best baseline to Belady that is closed."""
        if self.bound is None or self.bound <= self.best:
            return None
        return (self.ours - self.best) / (self.bound - self.best)


def compare(trace: str, results: Iterable[Result]) -> list[Comparison]:
    """Return all measures at all sizes; empty without our policy or without baselines."""
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
    """Return where our policy is more than TOLERANCE below the best baseline."""
    return [comparison for comparison in comparisons if comparison.lead < -TOLERANCE]


def _one(trace: str, blocks: int, measure: str, policies: dict[str, Result]) -> Comparison:
    values = {name: float(getattr(result, measure)) for name, result in policies.items()}
    online = {name: value for name, value in values.items() if name not in (OURS, BELADY)}
    best = max(online, key=lambda name: online[name])
    return Comparison(trace, blocks, measure, values[OURS], online[best], best, values.get(BELADY))
