"""Which expert the pool follows: the one whose lead over the present one has outgrown what going over costs.

Each expert is a shadow cache of the pool's size, so what following it would have saved is known, in seconds.
The regret of not following an expert is what it saved more than the leader since it was last behind (Page's
test: the sum never falls below zero). Going over costs a miss for each block that the expert holds, the pool
does not, and that will be asked for again. As with renting and buying: the pool goes over once the regret
exceeds that price, so what it loses to the best expert is at most about twice what the changes cost, and no
constant says how long to wait. A lead that may be chance (two standard deviations) is none. Where experts
hold nearly the same, going over is cheap and done at once."""

from __future__ import annotations

import math
from collections.abc import Callable

DEVIATIONS = 2.0
"""Standard deviations by which a lead must be more than chance."""


class Leader:
    """Regrets by expert; told the seconds that each saved."""

    def __init__(self, experts: int, check_ticks: int, first: int = 0) -> None:
        """`first` leads at the beginning; those before it are counted, and never lead."""
        self.now = first
        """The expert that is followed."""
        self.changes = 0
        self.gains: list[float] = [0.0] * (1 << experts)
        """Seconds saved since the last tick, by the set of experts (bits) that had the block."""
        self.saved_s: list[float] = [0.0] * experts
        """What each has saved since the beginning."""
        self._experts = range(experts)
        self._candidates = range(first, experts)
        self._regrets_s = [0.0] * experts
        self._squares = [0.0] * experts
        """Of each regret, the sum of the squares that it is made of: how much of it may be chance."""
        self._prices_s = [0.0] * experts
        self._check_ticks = check_ticks
        self._ticks = 0

    def tick(self, price_s: Callable[[int], float]) -> bool:
        """Count what was saved meanwhile; whether another expert leads now.

        `price_s` says what going over to an expert costs; it is asked every `check_ticks` at most.
        """
        self._ticks += 1
        saved_s = [0.0] * len(self._experts)
        for mask, gain_s in enumerate(self.gains):
            if gain_s:
                for expert in self._experts:
                    if mask >> expert & 1:
                        saved_s[expert] += gain_s
        self.gains = [0.0] * len(self.gains)
        lead_s = saved_s[self.now]
        regrets_s, squares = self._regrets_s, self._squares
        for expert in self._experts:
            self.saved_s[expert] += saved_s[expert]
            lead_of_tick_s = saved_s[expert] - lead_s
            regret_s = regrets_s[expert] + lead_of_tick_s
            if regret_s > 0.0:
                regrets_s[expert] = regret_s
                squares[expert] += lead_of_tick_s * lead_of_tick_s
            else:
                regrets_s[expert] = squares[expert] = 0.0
        certain_s = [
            regret_s - DEVIATIONS * math.sqrt(square)
            for regret_s, square in zip(regrets_s, squares, strict=True)
        ]
        best = max(self._candidates, key=lambda expert: certain_s[expert] - self._prices_s[expert])
        if certain_s[best] <= self._prices_s[best] or self._ticks % self._check_ticks:
            return False
        self._prices_s[best] = price_s(best)
        if certain_s[best] <= self._prices_s[best]:
            return False
        self.now = best
        self.changes += 1
        self._regrets_s = [0.0] * len(self._experts)
        self._squares = [0.0] * len(self._experts)
        self._prices_s = [0.0] * len(self._experts)
        return True
