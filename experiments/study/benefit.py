"""What a system is worth against another: seconds until the first token, GPU seconds, and dollars."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.simulator.scenario import Prices
from experiments.study.results import Figures

SECOND_DOLLARS = Prices().node_per_hour / 3600
"""What a saved second of waiting is worth by convention: a second of the node that the request waits for."""
NOISE = 0.01
"""Smaller changes of the mean TTFT count as none."""


@dataclass(frozen=True, slots=True)
class Benefit:
    """Of a system over a reference, per hour."""

    saved_ttft_s: float
    """Of all requests of an hour."""
    saved_gpu_s: float
    extra_dollars: float
    """Hardware that caches, beyond the reference's."""
    ttft_ratio: float
    """Mean TTFT over the reference's."""

    @property
    def net_dollars(self) -> float:
        """Saved seconds at their price, less the extra hardware; noise saves nothing."""
        saved_s = self.saved_ttft_s if abs(1 - self.ttft_ratio) > NOISE else 0.0
        return saved_s * SECOND_DOLLARS - self.extra_dollars

    @property
    def pays(self) -> bool:
        """Whether it earns more than it costs."""
        return self.net_dollars > 0

    @property
    def dollars_per_saved_s(self) -> float | None:
        """Of TTFT; None where nothing is saved."""
        return self.extra_dollars / self.saved_ttft_s if self.saved_ttft_s > 0 else None


def benefit(figures: Figures, reference: Figures) -> Benefit:
    """Both with the same demand."""
    hourly = 3600 / reference["duration_s"]
    saved_ttft_s = (reference["ttft_s"]["mean"] - figures["ttft_s"]["mean"]) * reference["completed"]
    return Benefit(
        saved_ttft_s * hourly,
        (reference["prefill_s"] - figures["prefill_s"]) * hourly,
        figures["cache_dollars_per_hour"] - reference["cache_dollars_per_hour"],
        figures["ttft_s"]["mean"] / reference["ttft_s"]["mean"],
    )
