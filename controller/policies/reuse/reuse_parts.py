"""Variations of the reuse-value policy for experiments: parts that can be switched off, and constants."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """Parts of the policy, all on by default. Experiments switch them off one at a time."""

    learning: bool = True
    """Hazards are learned; without, they are what is assumed before anything is seen."""
    memory: bool = True
    """Blocks that are not wanted in the pool are remembered."""
    lookahead: bool = True
    """The index looks ahead; without, it is the hazard at the block's age."""
    prefix: bool = True
    """Leaves are evicted first, and no block is admitted without its parent."""
    worth: bool = True
    """Blocks are told apart by the seconds that a hit saves; without, all are worth the same."""


@dataclass(frozen=True)
class Tuning:
    """Constants that could have been fitted to a trace: `make policies CROSS=yes` chooses them on others."""

    fade_pools: float = 8.0
    """Number of times that the pool's size is asked for until what was learned fades to 1/e. A small pool
    lives by what is asked for again soon, and learns anew as soon."""
    prior_reuses: float = 1.0
    """Weight of what is assumed of a class and age before it was seen, in reuses."""
    margin: float = 0.01
    """Relative margin by which a newcomer's value must exceed that of the block it displaces."""
