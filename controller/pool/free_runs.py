"""The free slots of a pool, as runs: joined with their neighbours as they come back, and found by length.

A block takes consecutive slots. Which run it is cut from decides how much of the pool can be used in the long
run: one of its own length if there is one; otherwise the shortest that leaves room for another such block;
otherwise the shortest that is long enough. So little is left over in pieces too short for any block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator


class FreeRuns:
    """Slots 0 .. `slots` - 1, all free at the beginning."""

    def __init__(self, slots: int) -> None:
        self.total = 0
        """Free slots."""
        self._firsts: list[int] = []
        """First slots of all runs, ascending; no two runs touch."""
        self._length: dict[int, int] = {}
        self._by_length: dict[int, OrderedDict[int, None]] = {}
        """First slots by length, those that are free for longest first."""
        self._lengths: list[int] = []
        """Lengths of which there are runs, ascending."""
        if slots:
            self.give_back(0, slots)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Iterate over first slot and length of each run, in the order of slots."""
        return ((first, self._length[first]) for first in self._firsts)

    def take(self, length: int) -> int | None:
        """Take so many consecutive slots, which are no longer free; return the first, or None if there are
        none."""
        at = bisect_left(self._lengths, length)
        if at == len(self._lengths):
            return None
        found = self._lengths[at]
        if found != length:
            roomy = bisect_left(self._lengths, 2 * length)
            found = self._lengths[roomy if roomy < len(self._lengths) else at]
        first = next(iter(self._by_length[found]))
        self._cut(first, first, length)
        return first

    def take_at(self, first: int, length: int) -> bool:
        """Take certain slots; False, and nothing is taken, unless all of them are free."""
        at = bisect_right(self._firsts, first) - 1
        if at < 0 or first + length > self._firsts[at] + self._length[self._firsts[at]]:
            return False
        self._cut(self._firsts[at], first, length)
        return True

    def give_back(self, first: int, length: int) -> None:
        """Give back slots; they must not have been free before."""
        self.total += length
        end = first + length
        at = bisect_left(self._firsts, first)
        if at < len(self._firsts) and self._firsts[at] == end:
            end += self._drop(end)
        if at and self._firsts[at - 1] + self._length[self._firsts[at - 1]] == first:
            first = self._firsts[at - 1]
            self._drop(first)
        self._add(first, end - first)

    def _cut(self, run: int, first: int, length: int) -> None:
        """Take a piece out of a run; what is left of it stays free."""
        self.total -= length
        end = run + self._drop(run)
        if first > run:
            self._add(run, first - run)
        if first + length < end:
            self._add(first + length, end - first - length)

    def _add(self, first: int, length: int) -> None:
        insort(self._firsts, first)
        self._length[first] = length
        if length not in self._by_length:
            insort(self._lengths, length)
            self._by_length[length] = OrderedDict()
        self._by_length[length][first] = None

    def _drop(self, first: int) -> int:
        del self._firsts[bisect_left(self._firsts, first)]
        length = self._length.pop(first)
        same = self._by_length[length]
        del same[first]
        if not same:
            del self._by_length[length]
            del self._lengths[bisect_left(self._lengths, length)]
        return length
