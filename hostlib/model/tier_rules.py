"""Rules by which blocks move between the GPU's memory and DRAM, by name.

exclusive  a block is in one tier: what the GPU drops is written to DRAM, what is used there moves up
inclusive  what comes into the GPU is also written to DRAM, so that it leaves the GPU without being moved;
           both hold fewer different blocks
by-value   exclusive, but the block worth least moves down, and of those the one worth least leaves

A rule with another order or other values: one function here, one line in RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from hostlib.model.eviction import BlockValues, EvictionOrder, Key, LruOrder, ValueOrder


class TierRuleError(ValueError):
    """A rule that does not exist; the message lists those that do."""


def _ignore(_: Any) -> None:
    """Do nothing: a rule without values ignores events."""


@dataclass(frozen=True)
class TierRule(Generic[Key]):
    """The state of one node's rule."""

    gpu: EvictionOrder[Key]
    dram: EvictionOrder[Key]
    """Order of the blocks that DRAM alone holds. Those that the GPU holds, too, stay."""
    inclusive: bool = False
    used: Callable[[Sequence[Key]], None] = _ignore
    """Told of each chain that a request used."""
    dropped: Callable[[Key], None] = _ignore
    """Told of each block that left the node."""


def exclusive() -> TierRule[Key]:
    """Return the rule that evicts the least recently used block, one tier at a time."""
    return TierRule(LruOrder(), LruOrder())


def inclusive() -> TierRule[Key]:
    """Return the rule that evicts the least recently used block, where DRAM also holds what the GPU holds."""
    return TierRule(LruOrder(), LruOrder(), inclusive=True)


def by_value(recompute_s: Callable[[int], float]) -> TierRule[Key]:
    """Return the rule that evicts the block of least worth, one tier at a time.

    `recompute_s` is the time to compute the block at a depth.
    """
    values: BlockValues[Key] = BlockValues(recompute_s)
    return TierRule(ValueOrder(values), ValueOrder(values), used=values.used, dropped=values.dropped)


DEFAULT_RULE = "exclusive"
RULES: dict[str, Callable[[Callable[[int], float]], TierRule[Any]]] = {
    DEFAULT_RULE: lambda recompute_s: exclusive(),
    "inclusive": lambda recompute_s: inclusive(),
    "by-value": by_value,
}


def make_rule(name: str, recompute_s: Callable[[int], float]) -> TierRule[Any]:
    """Return the rule of that name; raises TierRuleError that lists the names."""
    if name not in RULES:
        raise TierRuleError(f"no rule for tiers {name!r}: choose one of {', '.join(RULES)}")
    return RULES[name](recompute_s)
