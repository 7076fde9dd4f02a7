"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable

from controller.policies.base import Policy
from controller.policies.baseline import BASELINES, MIN_BLOCKS, Baseline, PolicyError
from controller.policies.fifo import Fifo
from controller.policies.lfu import Lfu
from controller.policies.lru import Lru
from controller.policies.reuse.reuse import Reuse
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

_MAKERS: dict[str, Callable[[int, int | None, CostModel, float], Policy]] = {
    "fifo": lambda blocks, slots, cost, link_bit_s: Fifo(blocks, slots),
    "lru": lambda blocks, slots, cost, link_bit_s: Lru(blocks, slots),
    "reuse": lambda blocks, slots, cost, link_bit_s: Reuse(
        blocks, cost, link_bit_s=link_bit_s, capacity_slots=slots
    ),
    "lfu": lambda blocks, slots, cost, link_bit_s: Lfu(blocks, slots),
}
OWN_POLICIES = tuple(_MAKERS)
"""Policies that are written here; the others are libcachesim's."""
POLICY_NAMES = (*OWN_POLICIES, *BASELINES)


def make_policy(
    name: str,
    capacity_blocks: int,
    *,
    seed: int = 0,
    cost: CostModel | None = None,
    link_bit_s: float = DEFAULT_LINK_BIT_S,
    capacity_slots: int | None = None,
) -> Policy:
    """Return the policy of that name for a pool of `capacity_blocks`; raises PolicyError that lists the
    names.

    `link_bit_s` is the real rate of a storage node's link. With `capacity_slots` the policy also never holds
    more fragments than that; without, it takes all blocks to be alike.
    """
    if name not in POLICY_NAMES:
        raise PolicyError(f"no policy {name!r}: choose one of {', '.join(POLICY_NAMES)}")
    if capacity_blocks < 1:
        raise PolicyError(f"a pool holds at least one block, not {capacity_blocks}")
    if name in BASELINES:
        if capacity_blocks < MIN_BLOCKS:
            raise PolicyError(f"{name} needs a pool of at least {MIN_BLOCKS} blocks, not {capacity_blocks}")
        return Baseline(name, capacity_blocks, capacity_slots)
    return _MAKERS[name](capacity_blocks, capacity_slots, cost or CostModel(), link_bit_s)
