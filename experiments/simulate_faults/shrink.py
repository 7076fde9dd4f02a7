"""Makes a plan that fails smaller: fewer faults, then fewer operations, as long as it still fails.

What is left out moves the random choices of the network, so a smaller plan may fail in another way; any will
do. Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28 (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from experiments.simulate_faults.plan import Plan

Item = TypeVar("Item")


def shrink(plan: Plan, fails: Callable[[Plan], bool], tries: int = 200) -> Plan:
    """Return a part of a plan that fails, found in at most so many runs."""
    left = [tries]

    def still(candidate: Plan) -> bool:
        left[0] -= 1
        return left[0] >= 0 and fails(candidate)

    faults = minimal(plan.faults, lambda some: still(replace(plan, faults=tuple(some))))
    plan = replace(plan, faults=tuple(faults))
    operations = minimal(plan.operations, lambda some: still(replace(plan, operations=tuple(some))))
    return replace(plan, operations=tuple(operations))


def minimal(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """Return a part of the items, in their order, with which it still fails; none of its pieces can be left
    out (unless `fails` gave up)."""
    pieces = 2
    if items and fails(()):
        return ()
    while len(items) >= 2:
        size = -(-len(items) // pieces)
        for at in range(0, len(items), size):
            rest = (*items[:at], *items[at + size :])
            if fails(rest):
                items, pieces = rest, max(2, pieces - 1)
                break
        else:
            if size == 1:
                break
            pieces = min(len(items), 2 * pieces)
    return items
