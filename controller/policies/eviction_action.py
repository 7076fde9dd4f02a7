"""Action of the pool on a block that it evicts: drop it, demote it to a storage node, or keep a stub."""

from __future__ import annotations

from enum import Enum


class EvictionAction(Enum):
    """The three ways out of the pool."""

    DROP = "drop"
    """Another tier holds it: the slot is simply freed."""
    DEMOTE = "demote"
    """No other tier holds it and it is worth the transfer: it is sent to a storage node first."""
    STUB = "stub"
    """The transfer is not worth it: only key and history stay, in the policy's memory."""


def eviction_action(
    reuse_chance: float | None, recompute_s: float, transfer_s: float, held_elsewhere: bool
) -> EvictionAction:
    """Decide by residual value: the time to compute the block again, times the chance that it is asked for.

    `transfer_s` is what sending it takes now, waiting included. Without a chance (a policy that knows none)
    it counts as certain.
    """
    if held_elsewhere:
        return EvictionAction.DROP
    residual_s = (1.0 if reuse_chance is None else reuse_chance) * recompute_s
    return EvictionAction.DEMOTE if residual_s > transfer_s else EvictionAction.STUB
