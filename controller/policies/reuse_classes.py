"""The classes in which reuse is learned: how often a block was asked for, what it grew from, its place in
the chain.

- the last block of a chain: usually partial, so the next turn replaces it;
- a block asked for once, by its lineage (how often the block it grew from was asked for: the turn of a
  conversation, or a shared head) and the length of its chain;
- a block asked for again, by count, in classes that widen.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

COUNT_EDGES = (2, 3, 4, 6, 9, 16, 32, 64, 128, 256, 512)
"""Counts at which a class begins."""
LENGTH_EDGES = (9, 33)
"""Lengths of chains, in blocks, at which a class begins."""
LAST = 0
LENGTH_CLASSES = len(LENGTH_EDGES) + 1
LINEAGES = len(COUNT_EDGES) + 1
FIRST_COUNT_CLASS = 1 + LINEAGES * LENGTH_CLASSES
CLASSES = FIRST_COUNT_CLASS + len(COUNT_EDGES)

_COUNT_CLASS = tuple(bisect_right(COUNT_EDGES, count) for count in range(COUNT_EDGES[-1] + 1))
_LENGTH_CLASS = tuple(bisect_right(LENGTH_EDGES, length) for length in range(LENGTH_EDGES[-1] + 1))


def lineage_of(count: int) -> int:
    """Lineage of what grows from a block asked for `count` times before; 0 stands for once or unknown."""
    return _COUNT_CLASS[count] if count < len(_COUNT_CLASS) else LINEAGES - 1


def class_of(count: int, lineage: int, chain_blocks: int, is_last: bool) -> int:
    """The class of a block that has just been asked for."""
    if is_last:
        return LAST
    if count > 1:
        return FIRST_COUNT_CLASS - 1 + lineage_of(count)
    length = _LENGTH_CLASS[chain_blocks] if chain_blocks < len(_LENGTH_CLASS) else LENGTH_CLASSES - 1
    return 1 + lineage * LENGTH_CLASSES + length


def next_class_prior() -> NDArray[np.float64]:
    """Chances [class, next class] of what a block becomes when asked for again, before anything is seen."""
    chances = np.zeros((CLASSES, CLASSES))
    chances[:FIRST_COUNT_CLASS, FIRST_COUNT_CLASS] = 1.0
    for position, (begin, end) in enumerate(pairwise(COUNT_EDGES)):
        kind = FIRST_COUNT_CLASS + position
        chances[kind, kind + 1] = 1.0 / (end - begin)
        chances[kind, kind] = 1.0 - chances[kind, kind + 1]
    chances[-1, -1] = 1.0
    return chances
