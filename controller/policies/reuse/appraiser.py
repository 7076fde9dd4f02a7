"""Appraisal of one tenant's blocks: what was learned of them, and which of them are wanted in the tenant's
share.

Everything goes by the tenant's own accesses and their time. Beside other tenants, it decides as if it were
alone with its share.
"""

from __future__ import annotations

from collections.abc import Callable

from controller.policies.reuse.native import Core
from controller.policies.reuse.reuse_ages import AGE_EDGES, TICK_TOKENS
from controller.policies.reuse.reuse_model import Learner
from controller.policies.reuse.reuse_parts import Parts, Tuning
from controller.policies.reuse.worth import Worth

REFRESH_TICKS = 8
"""Number of ticks after which, at the latest, what was learned is put to use.

It is put to use earlier if an eighth more has been seen or was reused. So a loop is recognized by the first
blocks of its second round, before they displace the others. With 64 ticks instead of 8, 7 % less is saved
where traffic changes (`phases`, 1,000 blocks).
"""
MAX_TIMES = 4096
"""More requests than that in one event are not believed."""
MAX_TICKS = AGE_EDGES[-1]
"""More ticks at once make nothing older than all ages that are told apart."""


class Appraiser:
    """A core, and what is decided once in many accesses: when to put to use what was learned."""

    def __init__(
        self,
        make_core: Callable[[], Core],
        parts: Parts,
        tuning: Tuning,
        worth: Worth,
        block_tokens: int,
        capacity_blocks: int,
    ) -> None:
        """Make an appraiser of blocks of `block_tokens`: the clock goes by tokens (`reuse_ages.py`)."""
        self.core = make_core()
        """What is remembered, what is wanted, and the tenant's part of the pool."""
        self.places = 0
        """Places of worth that the core knows."""
        self._worth = worth
        self._learner = Learner(parts, tuning, block_tokens, capacity_blocks)
        self._learns = parts.learning
        self._block_tokens = block_tokens
        self._tokens_left = TICK_TOKENS
        """Until this tick ends."""
        self._tick = self._refreshed_at = 0
        self._reused_then = 0
        """Reuses until then."""
        self.core.refresh(0.0, self._learner)
        self.tell_worths()

    def tell_worths(self) -> None:
        """Tell the core what hits save."""
        self.core.set_worths(self._worth.seconds, self._worth.steps)
        self.places = len(self._worth.seconds)

    def count(self, times: int) -> None:
        """Advance the clock by so many requests, which are about to be counted."""
        times = times if times < MAX_TIMES else MAX_TIMES
        self._tokens_left -= times * self._block_tokens
        if self._tokens_left > 0:
            return
        core, ended = self.core, 1 - self._tokens_left // TICK_TOKENS
        self._tokens_left += ended * TICK_TOKENS
        for _ in range(min(ended, MAX_TICKS)):
            self._tick += 1
            reused = core.end_tick()
        ticks = self._tick - self._refreshed_at
        is_more = 8 * ticks >= self._tick or 8 * (reused - self._reused_then) > self._reused_then
        if ticks >= REFRESH_TICKS or is_more:
            self._refreshed_at, self._reused_then = self._tick, reused
            if self._learns:
                core.refresh(ticks, self._learner)
            self._worth.refresh()
            self.tell_worths()
