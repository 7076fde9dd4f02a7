"""The classes in which reuse is learned: how often a block was asked for, what it grew from, its place.

- a block asked for once that ends its chain: usually partial, so the next turn replaces it;
- another block asked for once, by its lineage: how often the block it grew from was asked for, which is the
  turn of a conversation, or a shared head;
- a block asked for again, by count;
- a block asked for often, by the mean gap between the times it was asked for.
"""

from __future__ import annotations

from bisect import bisect_right

COUNT_EDGES = (2, 3, 4, 6, 9)
"""Counts at which a class begins: twice in an octave."""
OFTEN = 16
"""Counts from which the mean gap says more than the count."""
GAP_STEPS_PER_TICK = 4
GAP_CLASSES = 12
"""Classes of mean gap, each twice as long as the next: from a quarter of a tick to 512 ticks and more."""

LAST = 0
LINEAGES = len(COUNT_EDGES) + 1
FIRST_COUNT_CLASS = 1 + LINEAGES
FIRST_GAP_CLASS = FIRST_COUNT_CLASS + len(COUNT_EDGES)
CLASSES = FIRST_GAP_CLASS + GAP_CLASSES

_LINEAGE = tuple(bisect_right(COUNT_EDGES, count) for count in range(OFTEN))
_COUNT_CLASS = tuple(FIRST_COUNT_CLASS - 1 + lineage for lineage in _LINEAGE)


def lineage_of(count: int) -> int:
    """Lineage of what grows from a block asked for `count` times; 0 stands for once or unknown."""
    return _LINEAGE[count] if count < OFTEN else LINEAGES - 1


def new_class(lineage: int, is_last: bool) -> int:
    """The class of a block that was asked for once."""
    return LAST if is_last else 1 + lineage


def class_of(count: int, gap_ticks: float) -> int:
    """The class of a block that was asked for again; a higher class is asked for more."""
    if count < OFTEN:
        return _COUNT_CLASS[count]
    return FIRST_GAP_CLASS + max(0, GAP_CLASSES - 1 - int(gap_ticks * GAP_STEPS_PER_TICK).bit_length())
