"""Which expert the pool follows, and what it gives up first.

Each expert is a cache of the pool's size without blocks, so what following it would have saved is known, in
seconds. The pool follows one. Going over to another costs up to a miss for each block of the pool, and coming
back as much; the pool goes over once the other has saved that much more than the pool. That is the rule for
renting and buying: whoever changes sooner may lose more by changing than by staying, whoever waits longer
loses more by staying, and so the pool is behind an expert that is better for long by a few pools full of hits
at most. Each tick in which the pool saves more than the other takes off the lead, down to none, so what was
long ago does not count.

The pool begins with the first expert, the learned value."""

from __future__ import annotations

from collections.abc import Sequence

THERE_AND_BACK = 2
"""Fillings of the pool that a change may cost."""


class Votes:
    """Who is followed, by what each saved, and what the votes for a block weigh."""

    def __init__(self, experts: int, silent: int = 0) -> None:
        """Experts whose bit is in `silent` are counted, and have no vote."""
        self.saved_s = [0.0] * experts
        """What each has saved since the beginning."""
        self._experts = range(experts)
        self._voting = [expert for expert in self._experts if not silent >> expert & 1]
        self._ranks = list(self._voting)
        """Who was followed last comes first."""
        self.weights: list[float] = []
        self.of_set: list[float] = []
        """Weight of the votes of each set of experts (bits)."""
        self.order: list[int] = []
        """Sets, least weight first."""
        self._ahead_s = [0.0] * experts
        """What each has saved more than the pool since the last change, or since it was last behind."""
        self._asked_s = 0.0
        self._accesses = 0
        self.follow(self.followed)

    @property
    def followed(self) -> int:
        """The expert that the pool follows."""
        return self._ranks[0]

    def tick(
        self,
        gains_s: Sequence[float],
        pool_s: float,
        asked_s: float,
        accesses: int,
        held: int,
    ) -> bool:
        """Count what was saved in the last so many accesses; whether the pool follows another from now on.

        `gains_s` is by the set of experts that had the block, `pool_s` what the pool saved, `asked_s` what it
        would have saved with all blocks, `held` how many it has.
        """
        self._asked_s += asked_s
        self._accesses += accesses
        saved_s = [0.0] * len(self._experts)
        for mask, gain_s in enumerate(gains_s):
            if gain_s:
                for expert in self._experts:
                    if mask >> expert & 1:
                        saved_s[expert] += gain_s
        for expert in self._experts:
            self.saved_s[expert] += saved_s[expert]
            self._ahead_s[expert] = max(0.0, self._ahead_s[expert] + saved_s[expert] - pool_s)
        best = max(self._ranks, key=self._ahead_s.__getitem__)
        refill_s = held * self._asked_s / self._accesses
        if best == self.followed or self._ahead_s[best] <= THERE_AND_BACK * refill_s:
            return False
        self.follow(best)
        return True

    def follow(self, expert: int) -> None:
        """Follow that expert from now on.

        Each vote outweighs all behind it: of blocks that the expert does not hold, those leave first that the
        one followed before does not hold either.
        """
        self._ranks.remove(expert)
        self._ranks.insert(0, expert)
        self._ahead_s = [0.0] * len(self._experts)
        self.weights = [0.0] * len(self._experts)
        for rank, other in enumerate(self._ranks):
            self.weights[other] = 0.5**rank
        self.of_set = [
            sum((self.weights[other] for other in self._experts if mask >> other & 1), 0.0)
            for mask in range(1 << len(self._experts))
        ]
        self.order = sorted(range(1 << len(self._experts)), key=self.of_set.__getitem__)
