"""Seconds that a hit saves: the lesser of computing the block and fetching it from its home.

The asking node says how long computing takes; else the cost model says it for the block's depth. Fetching
takes the transfer and the wait at the home. A wait ends long before the block's next use, so the home's habit
counts instead of its present wait. The habit is the mean over the waits that the home reported, each compared
with computing on its own. A home of which little is known is assumed to be like all homes with as fast a
link.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from workload.cost import DEFAULT_LINK_BIT_S, CostModel

STEPS_PER_OCTAVE = 4
"""Grain of seconds. A place keeps its step until it is a whole step off: else noise would reorder blocks."""
WAITS = 4096
"""Reports of a home after which older ones count half."""
SHARED_WAITS = 1024
"""Reports of all homes with as fast a link that count for each: waits are skewed, a mean of fewer says
little."""
MAX_PLACES = 4096
"""Kinds of blocks told apart, by home and cost; what is beyond shares one."""
MAX_HOMES = 256


class Worth:
    """Seconds by place: a number for a home and a cost of computing."""

    def __init__(
        self, cost: CostModel, link_bit_s: float = DEFAULT_LINK_BIT_S, uniform: bool = False
    ) -> None:
        self.seconds: list[float] = []
        """What a hit saves, by place."""
        self.steps: list[int] = []
        """The same as a number of steps: log2, STEPS_PER_OCTAVE to an octave."""
        self._cost = cost
        self._link_bit_s = link_bit_s
        """Of a home that did not say otherwise."""
        self._links_bit_s: dict[int, float] = {}
        self._uniform = uniform
        self._places: dict[tuple[int, int], int] = {}
        self._by_depth: dict[tuple[int, int], int] = {}
        self._waits: dict[int, Counter[int]] = {}
        """How often each wait was reported, by home; a wait as a step, IDLE for none."""
        self._shared: defaultdict[float, Counter[int]] = defaultdict(Counter)
        """The same of all homes whose links have a rate: what waits before a slow one takes longer."""
        self._usual_step = math.log2(self._transfer_s(0)) * STEPS_PER_OCTAVE
        """The mean worth of all places, in steps: steps are counted from there, as only differences
        matter."""
        self.place(0, 0)

    def place(self, home: int, depth: int, recompute_s: float = 0.0) -> int:
        """Return the place of a block; `recompute_s` is what the node said, 0 where unknown."""
        if not recompute_s:
            place = self._by_depth.get((home, depth))
            if place is not None:
                return place
        own_s = recompute_s or self._cost.block_prefill_s(depth)
        step = 0 if self._uniform else _step(own_s)
        place = self._places.get((home, step), -1)
        if place < 0:
            place = self._add(home, step)
        if not recompute_s and len(self._by_depth) < 16 * MAX_PLACES:
            self._by_depth[home, depth] = place
        return place

    def home_load(self, home: int, wait_s: float, link_bit_s: float = 0.0) -> None:
        """Note how long a fetch waits at a home, and at what rate its link sends; 0: as usual."""
        waits = self._waits.get(home)
        if waits is None:
            if len(self._waits) >= MAX_HOMES:
                return
            waits = self._waits[home] = Counter()
        if link_bit_s > 0.0:
            self._links_bit_s[home] = link_bit_s
        wait = _step(wait_s) if wait_s > 0.0 else IDLE
        waits[wait] += 1
        self._shared[self._rate(home)][wait] += 1

    def refresh(self) -> None:
        """Take what was reported meanwhile into account."""
        for waits in (*self._shared.values(), *self._waits.values()):
            if waits.total() > WAITS:
                for wait in list(waits):
                    waits[wait] //= 2
        steps = []
        for (home, step), place in self._places.items():
            self._set(place, home, step)
            steps.append(math.log2(self.seconds[place]) * STEPS_PER_OCTAVE)
        self._usual_step = sum(steps) / len(steps)

    @property
    def unit_s(self) -> float:
        """Return the seconds that step 0 stands for."""
        return float(2.0 ** (self._usual_step / STEPS_PER_OCTAVE))

    def describe(self, place: int) -> tuple[int, float, float]:
        """Return a place's home, its seconds to compute and the mean seconds to fetch from it."""
        home, step = next(key for key, number in self._places.items() if number == place)
        return home, _seconds(step), self._fetch_s(home, math.inf)

    def _add(self, home: int, step: int) -> int:
        if len(self._places) >= MAX_PLACES:
            return 0
        place = self._places[home, step] = len(self.seconds)
        self.seconds.append(0.0)
        self.steps.append(0)
        self._set(place, home, step)
        return place

    def _set(self, place: int, home: int, step: int) -> None:
        seconds = self.seconds[place] = self._fetch_s(home, _seconds(step))
        if not self._uniform:
            exact = math.log2(seconds) * STEPS_PER_OCTAVE - self._usual_step
            if abs(exact - self.steps[place]) >= 1.0:
                self.steps[place] = round(exact)

    def _fetch_s(self, home: int, at_most_s: float) -> float:
        """Return mean time to fetch from a home; each time at most so much."""
        transfer_s, total_s, reports = self._transfer_s(home), 0.0, 0.0
        shared = self._shared[self._rate(home)]
        weights = ((self._waits.get(home), 1.0), (shared, min(1.0, SHARED_WAITS / max(1, shared.total()))))
        for waits, weight in weights:
            for wait, times in (waits or {}).items():
                wait_s = 0.0 if wait == IDLE else _seconds(wait)
                total_s += weight * times * min(at_most_s, transfer_s + wait_s)
                reports += weight * times
        return total_s / reports if reports else min(at_most_s, transfer_s)

    def _rate(self, home: int) -> float:
        return self._links_bit_s.get(home, self._link_bit_s)

    def _transfer_s(self, home: int) -> float:
        return self._cost.fetch_s(self._cost.stored_bytes, self._rate(home))


IDLE = -(2**30)


def _step(seconds: float) -> int:
    return round(math.log2(min(max(seconds, 1e-9), 1e9)) * STEPS_PER_OCTAVE)


def _seconds(step: int) -> float:
    return float(2.0 ** (step / STEPS_PER_OCTAVE))
