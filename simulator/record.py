"""Record of how a simulated request was served."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostlib.model.blending import BlendRecord
from hostlib.node.request_record import SOURCES


@dataclass(slots=True)
class Record:
    """Record of one request; times are in seconds."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    sources: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    levels: dict[str, int] = field(default_factory=dict)
    """Number of blocks of its stream at each level, and of those left to be computed as text."""
    fetch_s: float = 0.0
    prefill_s: float = 0.0
    saved_s: float = 0.0
    """Seconds of prefill that the found blocks made unnecessary."""
    blend: BlendRecord | None = None
    """Record of the blending, if chunks were blended."""
    ttft_s: float = 0.0
    end_s: float = 0.0

    def count(self, level: str, blocks: int) -> None:
        """Count blocks of its stream that came at a level, or were left out."""
        self.levels[level] = self.levels.get(level, 0) + blocks

    @property
    def found_share(self) -> float:
        """Return the share of blocks that need not be computed."""
        total = sum(self.sources.values())
        return 1 - self.sources["recomputed"] / total if total else 0.0

    @property
    def tpot_s(self) -> float:
        """Return the mean seconds of each token after the first; 0 if there is none."""
        tokens = self.output_tokens - 1
        return (self.end_s - self.arrival_s - self.ttft_s) / tokens if tokens > 0 else 0.0
