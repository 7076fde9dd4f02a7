"""Records of the requests that an inference node served, one by one and counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from hostlib.model.blending import BlendRecord

SOURCES = ("gpu", "dram", "pool", "remote", "recomputed")


@dataclass(slots=True)
class RequestRecord:
    """Times and counts of one served request, in seconds of the emulation; None for steps that it did not
    reach."""

    arrival_s: float
    sources: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    """Blocks by where they came from."""
    refused: int = 0
    """Blocks that the gate did not let through."""
    fetch_s: float = 0.0
    levels: dict[str, int] = field(default_factory=dict)
    """Blocks of a stream by the level at which they came, and those that it left to be computed as text."""
    decode_s: float = 0.0
    """Seconds from the end of the fetch until the codec had decoded its blocks."""
    waits_s: dict[str, float] = field(default_factory=dict)
    """The fetch by what it waited for (`hostlib.model.waits`); adds up to `fetch_s`."""
    queue_s: float = 0.0
    """Waiting for the GPU."""
    prefill_s: float = 0.0
    ttft_s: float | None = None
    end_s: float | None = None
    """Time at which the last token was decoded."""
    tokens: int = 0
    """Number of tokens that were decoded."""
    blocks: list[dict[str, Any]] | None = None
    """Key, depth, fragments by origin and times of each fetched block; None where nobody asked for that."""
    expected: list[int] | None = None
    """Depths of the blocks that were computed and put, of which the controller is told where that is wanted;
    None where nobody asked for that. `expected_s`: when computing them began, by the clock of `blocks`."""
    expected_s: float | None = None
    missing: str | None = None
    """Key of the block that ended the fetch before the chain's end, where someone asked for that."""
    fetch_ended_by: str | None = None
    """The error that ended the fetch before the chain's end."""
    failure: str | None = None
    blend: BlendRecord | None = None
    """Blending of chunks, if there was any. `fetch_s` is then of the prefix alone."""

    def report(self) -> dict[str, Any]:
        """Return the record as JSON. `dataclasses.asdict` would copy it, which takes as long as serving the
        request."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return told | {"blend": None if self.blend is None else asdict(self.blend)}


@dataclass(slots=True)
class InferenceStats:
    """Counters of a node; blocks for puts."""

    arrived: int = 0
    completed: int = 0
    failed: int = 0
    puts_skipped: int = 0
    """New blocks not stored because too many waited."""
    puts_failed: int = 0
    compared: int = 0
    """Fetched blocks whose bytes were compared with those that the model computed; only with real KV."""
    different: int = 0
    """Number of these that were not the same."""
