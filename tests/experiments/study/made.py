"""Samples with known figures, for tests of what is said of them."""

from collections.abc import Sequence
from typing import Any

from experiments.study.sample import Sample

SPREAD = (-0.001, 0.0, 0.001)
"""What three seeds differ by, as a share."""


COUNTS = (
    "requests_per_s", "saved_prefill_s", "storage_busy_share", "switch_served_bytes", "merged", "digests",
    "table_writes", "table_updates", "entries_read", "control_bytes", "control_cpu_s",
)  # fmt: skip


def sample(mean_s: float, cost: float = 0.0, steady_s: float | None = None, **changed: Any) -> Sample:
    """Three runs around a mean TTFT; all else equal unless changed."""
    return of_runs([run(mean_s * (1 + by), cost, steady_s, **changed) for by in SPREAD])


def of_runs(runs: Sequence[dict[str, Any]]) -> Sample:
    """A sample of given runs."""
    return Sample(tuple(runs))


def run(mean_s: float, cost: float = 0.0, steady_s: float | None = None, **changed: Any) -> dict[str, Any]:
    """The figures of one run that comparisons read."""
    steady = mean_s if steady_s is None else steady_s
    return {
        "requests": 1000,
        "completed": 1000,
        "duration_s": 3600.0,
        "ttft_s": {"mean": mean_s, "p50": mean_s, "p99": 3 * mean_s},
        "start_ttft_s": {"mean": 2 * mean_s - steady, "p50": mean_s, "p99": 3 * mean_s},
        "steady_ttft_s": {"mean": steady, "p50": steady, "p99": 3 * steady},
        "parts_ttft_s": [{"mean": one, "p50": one, "p99": 3 * one} for one in (2 * mean_s, steady, steady)],
        "prefill_s": 100.0,
        "storage_egress_bytes": 1e9,
        "blocks": {"gpu": 1, "dram": 0, "pool": 0, "remote": 999, "recomputed": 0},
        "pool_blocks": 12,
        "tpot_s": {"mean": 0.01, "p50": 0.01, "p99": 0.02},
        "between_tokens_s": {"mean": 0.01, "p50": 0.01, "p99": 0.03},
        "end_to_end_s": {"mean": 1 + mean_s, "p50": 1 + mean_s, "p99": 5 + mean_s},
        **dict.fromkeys(COUNTS, 0.0),
        "cache_dollars_per_hour": cost,
        "dollars_per_hour": 500.0 + cost,
        **changed,
    }
