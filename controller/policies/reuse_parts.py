"""The parts of the reuse-value policy that an ablation can switch off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """All on is the policy; the experiments switch them off one at a time."""

    learning: bool = True
    """Hazards are learned; without, they are what is assumed before anything is seen."""
    memory: bool = True
    """Blocks that are not in the pool are remembered."""
    lineage: bool = True
    """New blocks are told apart by what they grew from."""
    place: bool = True
    """The last block of a chain, and new blocks of long chains, are told apart."""
    lookahead: bool = True
    """The index looks ahead; without, it is the hazard at the block's age."""
    prefix: bool = True
    """Leaves are evicted first, and no block is admitted without its parent."""
