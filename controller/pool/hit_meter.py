"""Hits of blocks from the fragments that were served of them, and how often to read those.

The switch counts at a block's first slot, and goes on counting there when the slots get another owner. A
block's hits are therefore counted from the last reading before it came, if that was after its predecessor
had left, and otherwise from the first reading after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

MIN_PERIOD_S: Final = 0.5
MAX_PERIOD_S: Final = 60.0
BUSY_SHARE: Final = 0.01
"""Part of the time that reading one switch's counters may take: N of them take N times as long."""
BUSY_SHARE_OF_ALL: Final = 0.01
"""Largest share of time for reading the counters of all switches, which one process reads."""


@dataclass(slots=True)
class _Reading:
    key: bytes
    fragments: int
    settled: bool
    """Whether what was last read there is where the block's own count begins."""
    left_over: int = 0
    """Fragments not yet reported as a hit."""


class HitMeter:
    """Turns counter readings into hits: a request for a block is a fragment served for each that it has."""

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}
        self._counted: dict[int, int] = {}
        """As last read, by first slot."""
        self._left: set[int] = set()
        """Slots whose last owner left after they were read."""
        self._unsettled: set[int] = set()
        """First slots of blocks that came since the last reading: no more than there are slots."""

    def slots(self) -> Iterator[int]:
        """Yield the first slots whose counters should be read."""
        yield from self._readings
        yield from (base_slot for base_slot in self._left if base_slot not in self._readings)

    def started(self, key: bytes, base_slot: int, fragments: int, settled: bool = True) -> None:
        """Begin to read the counter of a block that got slots.

        It is not `settled` if it had them before, with an unknown count.
        """
        reading = _Reading(key, fragments, settled and base_slot not in self._left)
        self._readings[base_slot] = reading
        if not reading.settled:
            self._unsettled.add(base_slot)

    def ended(self, base_slot: int) -> None:
        """Stop reading the counter of a block that was removed."""
        if self._readings.pop(base_slot, None) is not None:
            self._left.add(base_slot)
            self._unsettled.discard(base_slot)

    def clear(self) -> None:
        """Forget all readings: the counters began anew."""
        self._left |= self._readings.keys() | self._counted.keys()
        self._counted.clear()
        self._readings.clear()
        self._unsettled.clear()

    def read(self, counts: Mapping[int, int]) -> Iterator[tuple[bytes, int]]:
        """Yield the blocks that were asked for since the last reading, and how many times.

        `counts` may leave out what has not changed.
        """
        for base_slot, counted in counts.items():
            before, self._counted[base_slot] = self._counted.get(base_slot, 0), counted
            reading = self._readings.get(base_slot)
            # A smaller count is that of a switch that was restarted in between.
            if reading is None or not reading.settled or counted <= before:
                continue
            reading.left_over += counted - before
            if reading.left_over >= reading.fragments:
                times, reading.left_over = divmod(reading.left_over, reading.fragments)
                yield reading.key, times
        self._left.clear()
        for base_slot in self._unsettled:
            self._readings[base_slot].settled = True
        self._unsettled.clear()


READS_PER_S: Final = 4.0
"""Reads of counters a second, of all switches together. A request costs more than what it brings, and most of
that in gRPC's threads, which `next_period_s` can't see."""


def least_period_s(switches: int, alone_s: float) -> float:
    """Return the seconds between two readings of one of so many switches; of a single one, `alone_s`."""
    return max(alone_s, switches / READS_PER_S)


def next_period_s(reading_took_s: float, switches: int = 1) -> float:
    """Return the time to the next reading of one of so many switches, so that reading takes no more than its
    share."""
    share = min(BUSY_SHARE, BUSY_SHARE_OF_ALL / switches)
    return min(MAX_PERIOD_S, max(least_period_s(switches, MIN_PERIOD_S), reading_took_s / share))
