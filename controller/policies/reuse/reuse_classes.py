"""The classes in which reuse is learned: how often a block was asked for, what it grew from, its place.

- a block asked for once that ends its chain: usually partial, so the next turn replaces it;
- another block asked for once, by its lineage: of a block from which others grew before, how many of those
  were asked for again, which tells documents that are read once from conversations behind another system
  prompt; else how often it was asked for, which is the turn of a conversation, or a shared head;
- a block asked for again, by the mean gap between the times it was asked for, and within that by how often.

Counts alone tell too little: what comes in a burst and then never again has the counts of what is asked for
seldom and for ever, and in a loop they rise with each round, into classes of which nothing is known yet. Gaps
alone, too: one short gap is chance more often than eight are.
"""

from __future__ import annotations

from bisect import bisect_right

COUNT_EDGES = (2, 3, 4, 6, 9)
"""Counts at which a lineage begins: twice in an octave."""
GAP_STEPS_PER_TICK = 4
GAP_CLASSES = 12
"""Classes of mean gap, each twice as long as the next: from a quarter of a tick to 512 ticks and more."""

LAST = 0
MIN_CHILDREN = 4
"""Children of a block from which on they tell what becomes of the next one."""
MAX_CHILDREN = 256
"""Number of children of a block at which half are forgotten, so that what became of them lately counts."""
CHILD_EDGES = (2, 4, 16, 64)
"""Children for each that was asked for again, at which a lineage begins."""
COUNT_LINEAGES = len(COUNT_EDGES) + 1
LINEAGES = COUNT_LINEAGES + len(CHILD_EDGES) + 1
FIRST_GAP_CLASS = 1 + LINEAGES
LEVEL_COUNTS = (4, 9)
"""Counts at which a level within a class of gaps begins."""
LEVELS = len(LEVEL_COUNTS) + 1
CLASSES = FIRST_GAP_CLASS + GAP_CLASSES * LEVELS

_LINEAGE = tuple(bisect_right(COUNT_EDGES, count) for count in range(COUNT_EDGES[-1]))


def lineage_of(count: int, children: int = 0, again: int = 0) -> int:
    """Return the lineage of a block's children: the block was asked for `count` times, and so many of them
    again.

    0 stands for once or unknown.
    """
    if children >= MIN_CHILDREN:
        return COUNT_LINEAGES + bisect_right(CHILD_EDGES, (children + 2) // (again + 1))
    return _LINEAGE[count] if count < len(_LINEAGE) else COUNT_LINEAGES - 1


def new_class(lineage: int, is_last: bool) -> int:
    """Return the class of a block that was asked for once."""
    return LAST if is_last else 1 + lineage


def class_of(count: int, gap_ticks: float) -> int:
    """Return the class of a block that was asked for again; a higher class is asked for more."""
    gap = max(0, GAP_CLASSES - 1 - int(gap_ticks * GAP_STEPS_PER_TICK).bit_length())
    return FIRST_GAP_CLASS + gap * LEVELS + bisect_right(LEVEL_COUNTS, count)
