"""Scale model: bytes and link rates shrink by sigma, time does not; speed then compresses time itself.

With sigma 5,000, a block of 83.9 MB becomes 16,384 bytes and a 200 Gbit/s link 40 Mbit/s. The block still
takes 3.3 ms, so queueing and incast happen in real time on one machine. With speed s, a trace and everything
else runs s times as fast: GPU times shrink by s, link rates grow by s.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_SIGMA = 5000.0
FRAGMENT_BYTES = 512


class ScaleError(ValueError):
    """Scale that can't be built."""


@dataclass(frozen=True)
class ScaleModel:
    """Converter of real bytes, rates and durations to emulated ones and back."""

    sigma: float = DEFAULT_SIGMA
    speed: float = 1.0
    fragment_bytes: int = FRAGMENT_BYTES

    def __post_init__(self) -> None:
        if not (1 <= self.sigma < float("inf")):
            raise ScaleError(f"scale must be 1 or more, not {self.sigma:g}")
        if not (0 < self.speed < float("inf")):
            raise ScaleError(f"speed must be above 0, not {self.speed:g}")

    def block_bytes(self, real_bytes: float) -> int:
        """Return the emulated bytes of a block: whole fragments, rounded down, at least one."""
        return max(1, int(real_bytes / self.sigma) // self.fragment_bytes) * self.fragment_bytes

    def rate_bit_s(self, real_bit_s: float) -> float:
        """Return the emulated rate of a link in bit/s."""
        return real_bit_s / self.sigma * self.speed

    def duration_s(self, real_s: float) -> float:
        """Return the emulated seconds of what takes `real_s` seconds in reality."""
        return real_s / self.speed

    def real_bytes(self, emulated_bytes: float) -> float:
        """Return the real bytes that emulated bytes stand for."""
        return emulated_bytes * self.sigma

    def real_s(self, emulated_s: float) -> float:
        """Return the real seconds that an emulated duration stands for."""
        return emulated_s * self.speed
