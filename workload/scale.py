"""The scale model: bytes and link rates shrink by sigma, time does not; speed then compresses time itself.

With sigma 5,000 a block of 83.9 MB becomes 16,384 bytes and a 200 Gbit/s link 40 Mbit/s: the block still
takes 3.3 ms, so queueing and incast happen in real time on one machine. Speed s runs a trace s times as
fast and everything with it: GPU times shrink by s, link rates grow by s."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_SIGMA = 5000.0
FRAGMENT_BYTES = 512


class ScaleError(ValueError):
    """A scale that cannot be built."""


@dataclass(frozen=True)
class ScaleModel:
    """Converts real bytes, rates and durations to emulated ones and back."""

    sigma: float = DEFAULT_SIGMA
    speed: float = 1.0
    fragment_bytes: int = FRAGMENT_BYTES

    def __post_init__(self) -> None:
        if not (1 <= self.sigma < float("inf")):
            raise ScaleError(f"scale must be 1 or more, not {self.sigma:g}")
        if not (0 < self.speed < float("inf")):
            raise ScaleError(f"speed must be above 0, not {self.speed:g}")

    def block_bytes(self, real_bytes: float) -> int:
        """Emulated size of a block: whole fragments, rounded down, at least one."""
        return max(1, int(real_bytes / self.sigma) // self.fragment_bytes) * self.fragment_bytes

    def rate_bit_s(self, real_bit_s: float) -> float:
        """Return the emulated rate of a link in bit/s."""
        return real_bit_s / self.sigma * self.speed

    def duration_s(self, real_s: float) -> float:
        """Return how long the emulation takes for what really takes `real_s`."""
        return real_s / self.speed

    def real_bytes(self, emulated_bytes: float) -> float:
        """Return the bytes that the emulated ones stand for."""
        return emulated_bytes * self.sigma

    def real_s(self, emulated_s: float) -> float:
        """Return the time that an emulated duration stands for."""
        return emulated_s * self.speed
