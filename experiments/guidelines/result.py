"""What a case shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """One case, once."""

    mbyte_s: float
    latency_ms: float
    """Median of the nodes' medians, of a request."""
    failed: int
    """Requests that could not be loaded."""
