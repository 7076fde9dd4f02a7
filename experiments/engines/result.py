"""Results of the engines' replies, and results/engines/summary.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from emulator.result import Percentiles, percentiles
from engines.conformance.comparison import TOLERANCE, Reply, difference


@dataclass(frozen=True, slots=True)
class ModeResult:
    """Result of the trace in one mode."""

    requests: int
    identical: int
    """Number of requests with recomputing's tokens, and log-probabilities within the tolerance."""
    max_logprob_diff: float
    ttft_ms: Percentiles
    tbt_ms: Percentiles
    hit_tokens: int
    """Number of prompt tokens that vLLM counted as hits of its connector."""
    pool_bytes: int
    """Bytes of KV that the engines loaded from the switch."""
    store_bytes: int
    """Bytes of KV that the engines loaded from storage nodes, or from Mooncake."""
    merged: int
    """Number of fragments that arrived as a copy of the reply to another node."""
    first_ms: Percentiles
    """Time to the first token of requests with a new prefix, which shows what storing its KV costs."""
    own_tokens: int
    """Number of prompt tokens that the engines had in their own caches."""
    failed: dict[str, int]
    """Number of objects that could not be moved, by error."""
    round_ttft_ms: list[float]
    """Median time to the first token of each round."""
    round_first_ms: list[float]
    """Median time to the first token of the new prefixes of each round."""


@dataclass(frozen=True, slots=True)
class Served:
    """Replies of one round of a mode, and the sums of both engines' counts during it."""

    first: list[Reply]
    trace: list[Reply]
    counts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Damage:
    """Difference that KV damaged on purpose makes to a request's output."""

    tokens_changed: int
    max_logprob_diff: float

    @property
    def noticed(self) -> bool:
        """Return whether the comparison finds the damage, as it must."""
        return self.max_logprob_diff > TOLERANCE or self.tokens_changed > 0


def evaluate(rounds: Sequence[Served], reference: Sequence[Reply]) -> ModeResult:
    """Return the figures of all rounds together; `reference` has recomputing's replies to the same trace."""
    first = [reply for served in rounds for reply in served.first]
    trace = [reply for served in rounds for reply in served.trace]
    expected = [*reference] * len(rounds)
    differences = [difference(reply, other) for reply, other in zip(trace, expected, strict=True)]
    counts = Counter[str]()
    failed = Counter[str]()
    for served in rounds:
        counts.update({name: count for name, count in served.counts.items() if name != "failed"})
        failed.update(served.counts.get("failed", {}))
    hits = counts["hit_tokens"]
    return ModeResult(
        requests=len(trace),
        identical=sum(not changed and largest <= TOLERANCE for changed, largest in differences),
        max_logprob_diff=max(largest for _, largest in differences),
        ttft_ms=percentiles([1000 * reply["ttft_s"] for reply in trace]),
        tbt_ms=percentiles([1000 * gap_s for reply in trace for gap_s in reply["tbt_s"]]),
        hit_tokens=hits,
        pool_bytes=counts["pool_bytes"],
        store_bytes=counts["store_bytes"],
        merged=counts["merged"],
        first_ms=percentiles([1000 * reply["ttft_s"] for reply in first]),
        own_tokens=sum(reply["cached_tokens"] for reply in trace) - hits,
        failed=dict(failed),
        round_ttft_ms=[_median_ttft_ms(served.trace) for served in rounds],
        round_first_ms=[_median_ttft_ms(served.first) for served in rounds],
    )


def _median_ttft_ms(replies: Sequence[Reply]) -> float:
    return median(1000.0 * float(reply["ttft_s"]) for reply in replies)


def write_summary(
    path: Path, about: dict[str, object], modes: dict[str, ModeResult], damaged: Damage | None
) -> None:
    """Write the summary so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = {
        **about,
        "tolerance": TOLERANCE,
        "modes": {name: asdict(mode) for name, mode in modes.items()},
        "damaged": None if damaged is None else asdict(damaged) | {"noticed": damaged.noticed},
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(summary, indent=1) + "\n")
    part.replace(path)
