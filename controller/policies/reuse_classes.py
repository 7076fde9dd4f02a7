"""The classes in which reuse is learned: how often a block was asked for, what it grew from, its place.

- the last block of a chain: usually partial, so the next turn replaces it;
- a block asked for once, by its lineage (how often the block it grew from was asked for: the turn of a
  conversation, or a shared head) and the length of its chain;
- a block asked for again, by count;
- a block asked for often, by the mean gap between the times it was asked for.
"""

from __future__ import annotations

from bisect import bisect_right

COUNT_EDGES = (2, 3, 4, 6, 9)
"""Counts at which a class begins."""
OFTEN = 16
"""Counts from which the mean gap says more than the count."""
LINEAGE_EDGES = (*COUNT_EDGES, OFTEN, 32, 64, 128, 256, 512)
LENGTH_EDGES = (9, 33)
"""Lengths of chains, in blocks, at which a class begins."""
GAP_STEPS_PER_TICK = 4
GAP_CLASSES = 12
"""Classes of mean gap, each twice as long as the next: from a quarter of a tick to 512 ticks and more."""

LAST = 0
LENGTH_CLASSES = len(LENGTH_EDGES) + 1
LINEAGES = len(LINEAGE_EDGES) + 1
FIRST_COUNT_CLASS = 1 + LINEAGES * LENGTH_CLASSES
FIRST_GAP_CLASS = FIRST_COUNT_CLASS + len(COUNT_EDGES)
CLASSES = FIRST_GAP_CLASS + GAP_CLASSES

_LINEAGE = tuple(bisect_right(LINEAGE_EDGES, count) for count in range(LINEAGE_EDGES[-1] + 1))
_LENGTH_CLASS = tuple(bisect_right(LENGTH_EDGES, length) for length in range(LENGTH_EDGES[-1] + 1))
_COUNT_CLASS = tuple(FIRST_COUNT_CLASS - 1 + bisect_right(COUNT_EDGES, count) for count in range(OFTEN))


def lineage_of(count: int) -> int:
    """Lineage of what grows from a block asked for `count` times; 0 stands for once or unknown."""
    return _LINEAGE[count] if count < len(_LINEAGE) else LINEAGES - 1


def class_of(count: int, gap_ticks: float, lineage: int, chain_blocks: int, is_last: bool) -> int:
    """The class of a block that has just been asked for; a higher class by gap is asked for more."""
    if is_last:
        return LAST
    if count >= OFTEN:
        return FIRST_GAP_CLASS + max(0, GAP_CLASSES - 1 - int(gap_ticks * GAP_STEPS_PER_TICK).bit_length())
    if count > 1:
        return _COUNT_CLASS[count]
    length = _LENGTH_CLASS[chain_blocks] if chain_blocks < len(_LENGTH_CLASS) else LENGTH_CLASSES - 1
    return 1 + lineage * LENGTH_CLASSES + length
