"""From the engines' replies to results/engines/summary.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator.result import Percentiles, percentiles
from engines.conformance.comparison import TOLERANCE, Reply, difference


@dataclass(frozen=True, slots=True)
class ModeResult:
    """The trace in one mode."""

    requests: int
    identical: int
    """Requests with the tokens of recomputing, and log-probabilities within the tolerance."""
    max_logprob_diff: float
    ttft_ms: Percentiles
    tbt_ms: Percentiles
    hit_tokens: int
    """Prompt tokens that vLLM counted as hits of its connector."""
    pool_bytes: int
    """KV that the engines loaded, served by the switch."""
    store_bytes: int
    """KV that the engines loaded, served by storage nodes, or by a rival."""
    merged: int
    """Fragments that came as a copy of the reply to another node."""
    first_ms: Percentiles
    """Time to first token where each prefix was new: what storing what was computed costs."""
    own_tokens: int
    """Prompt tokens that the engines had in their own caches."""
    failed: dict[str, int]
    """Objects that could not be moved, by error."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One request that continues a prefix whose loaded KV was damaged on purpose."""

    tokens_changed: int
    max_logprob_diff: float

    @property
    def noticed(self) -> bool:
        """Return whether the comparison fails, as it must."""
        return self.max_logprob_diff > TOLERANCE or self.tokens_changed > 0


def evaluate(
    first: Sequence[Reply], trace: Sequence[Reply], reference: Sequence[Reply], counts: dict[str, Any]
) -> ModeResult:
    """`reference` are the replies of recomputing to the same trace; `counts` of both engines together."""
    differences = [difference(reply, expected) for reply, expected in zip(trace, reference, strict=True)]
    hits = counts.get("hit_tokens", 0)
    return ModeResult(
        requests=len(trace),
        identical=sum(not changed and largest <= TOLERANCE for changed, largest in differences),
        max_logprob_diff=max(largest for _, largest in differences),
        ttft_ms=percentiles([1000 * reply["ttft_s"] for reply in trace]),
        tbt_ms=percentiles([1000 * gap_s for reply in trace for gap_s in reply["tbt_s"]]),
        hit_tokens=hits,
        pool_bytes=counts.get("pool_bytes", 0),
        store_bytes=counts.get("store_bytes", 0),
        merged=counts.get("merged", 0),
        first_ms=percentiles([1000 * reply["ttft_s"] for reply in first]),
        own_tokens=sum(reply["cached_tokens"] for reply in trace) - hits,
        failed=counts.get("failed", {}),
    )


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
