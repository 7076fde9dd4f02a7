"""The ages by which reuse is learned, counted in accesses."""

from __future__ import annotations

TICK_ACCESSES = 64
"""The grain of ages: a few requests' worth of blocks."""
AGE_EDGES = (1, *[edge for octave in range(1, 13) for edge in (2**octave, 3 * 2 ** (octave - 1))], 8192)
"""Ages in ticks at which a bucket begins: two an octave, up to half a million accesses."""
BUCKETS = len(AGE_EDGES) + 1
