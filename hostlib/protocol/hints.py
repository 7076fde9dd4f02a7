"""Hints: what a tenant would like the homes of a block, and the pool, to do with it. Best effort; the outcome
is told.

A hint is a STAT with the flags BYPASS and HINT: `backlog_ms` says which hint, `recompute_ms` for how many
seconds. A home that knows hints answers FOUND or NOT_FOUND with the flag HINT; in that FOUND `recompute_ms`
is 1 if it does what it was asked for, and 0 if it does not. Homes of before answer without the flag. The
controller takes RETAIN and DEMOTE for the pool of the switch by which they come. It answers FOUND, with 0
also where the pool does not have the block. EXPIRE is no wish but an order: `generation` says the seconds,
`content` the write, the tag proves that it is the sender's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

MAX_RETAIN_S: Final = 0xFFFF
"""Longest time for which a block can be retained, in seconds: 18 hours. It can be asked for again."""
MAX_LIFETIME_S: Final = 366 * 86_400
"""Longest lifetime of a block, in seconds."""


class Hint(IntEnum):
    """Hints, by their numbers in messages."""

    RETAIN = 1
    """Let other blocks leave first, for a time; 0 seconds: not any more."""
    PREFETCH = 2
    """Have the block in DRAM, because it will be asked for soon."""
    DEMOTE = 3
    """Let it leave DRAM before others: it will not be asked for soon."""
    EXPIRE = 4
    """Delete it after a time, everywhere. It needs the proof that a deletion needs."""


OF_POOLS: Final = (Hint.RETAIN, Hint.DEMOTE)
"""Hints that pools take, too."""


class HintOutcome(IntEnum):
    """Result of a hint. If several homes answer, the largest number counts."""

    NO_ANSWER = 0
    """No home that knows hints answered in time."""
    NOT_FOUND = 1
    """No home has the block."""
    REFUSED = 2
    """A home has the block and does not do it, for instance as it retains as much as it may."""
    DONE = 3
    """A home does it."""
