"""Test whether a model depends on its context enough for its figures to count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from experiments.blocks.quality import Judge

PERPLEXITY_FACTOR: Final = 2.0
RECALL_POINTS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Effect of wrong KV on a model."""

    perplexity: float
    shuffled_perplexity: float
    """Perplexity with values moved to other tokens' keys."""
    recall: float
    foreign_recall: float
    """Recall with every chunk's KV computed without the chunks before it, and rotated to its place."""

    @property
    def shortfalls(self) -> list[str]:
        """Return the reasons why figures from this model mean nothing; empty for a model that counts."""
        missed = []
        factor = self.shuffled_perplexity / self.perplexity
        if factor < PERPLEXITY_FACTOR:
            missed.append(
                f"shuffled KV makes perplexity {factor:.2f} times as large, not {PERPLEXITY_FACTOR:g}"
            )
        points = 100 * (self.recall - self.foreign_recall)
        if points < RECALL_POINTS:
            missed.append(
                f"KV of chunks by themselves costs {points:.0f} points of recall, not {RECALL_POINTS:g}"
            )
        return missed


def shuffled_perplexity(judge: Judge, seed: int) -> float:
    """Return the perplexity with values moved to other tokens, at random, while keys stay."""
    random = np.random.default_rng(seed)
    kv = judge.kv.copy()
    order = random.permutation(kv.shape[3])
    kv[:, :, 1] = kv[:, :, 1][:, :, order]
    return judge.judge(kv).perplexity
