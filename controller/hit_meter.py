"""Hits of blocks from the packets that their entries counted, and how often to read those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_PERIOD_S: Final = 0.25
MAX_PERIOD_S: Final = 60.0
BUSY_SHARE: Final = 0.05
"""Part of the time that reading counters may take: N of them take N times as long."""


@dataclass(slots=True)
class _Reading:
    fragments: int
    counted: int | None
    """Packets of the last reading; None: there is none, and the first only sets the base."""
    left_over: int
    """Packets not yet reported as a hit; negative: packets to come that are no requests."""


class HitMeter:
    """Turns counter readings into hits: a request for a block is one packet for each fragment."""

    def __init__(self) -> None:
        self._readings: dict[bytes, _Reading] = {}

    def started(self, key: bytes, fragments: int, own_packets: int) -> None:
        """A block was installed; so many packets will pass that only fill it."""
        self._readings[key] = _Reading(fragments, 0, -own_packets)

    def passed(self, key: bytes, packets: int) -> None:
        """So many packets hit the entry that were no requests."""
        if key in self._readings:
            self._readings[key].left_over -= packets

    def found(self, key: bytes, fragments: int) -> None:
        """A block was there already, with an unknown count."""
        if key not in self._readings:
            self._readings[key] = _Reading(fragments, None, 0)

    def ended(self, key: bytes) -> None:
        """A block was removed."""
        self._readings.pop(key, None)

    def read(self, packets: Mapping[bytes, int]) -> Iterator[tuple[bytes, int]]:
        """Blocks that were asked for since the last reading, and how many times."""
        for key, counted in packets.items():
            reading = self._readings.get(key)
            if reading is None or counted == reading.counted:
                continue
            # A smaller count is another entry's: the switch restarted in between.
            if reading.counted is not None and counted > reading.counted:
                reading.left_over += counted - reading.counted
            reading.counted = counted
            if reading.left_over >= reading.fragments:
                times, reading.left_over = divmod(reading.left_over, reading.fragments)
                yield key, times


def next_period_s(reading_took_s: float) -> float:
    """Time to the next reading, so that reading takes no more than BUSY_SHARE of it."""
    return min(MAX_PERIOD_S, max(MIN_PERIOD_S, reading_took_s / BUSY_SHARE))
