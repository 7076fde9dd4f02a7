"""Limits of groups of action selectors: weights and sizes are checked here only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError
from v1model.p4info.annotations import number, string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.ir import ExternInstance

MAX_WEIGHT = (1 << 31) - 1  # P4Runtime's int32


@dataclass(frozen=True, slots=True)
class SelectorLimits:
    """Limits by @max_group_size, @selector_size_semantics and @max_member_weight of a selector; 0 is no
    limit.

    A group's size is the sum of its weights, or with sum_of_members the number of its members.
    """

    name: str
    max_group_size: int = 0
    counts_members: bool = False
    max_member_weight: int = 0

    @classmethod
    def of(cls, selector: ExternInstance) -> SelectorLimits:
        semantics = (string(selector.annotations, "selector_size_semantics") or "").lower()
        return cls(
            selector.name,
            number(selector.annotations, "max_group_size") or 0,
            semantics == "sum_of_members",
            number(selector.annotations, "max_member_weight") or 0,
        )

    def check(
        self, weights: Sequence[int], limit: int, what: str = "max_size", code: str = "RESOURCE_EXHAUSTED"
    ) -> None:
        """Raise INVALID_ARGUMENT for an impossible weight, `code` for a group larger than `limit`."""
        most = self.max_member_weight or MAX_WEIGHT
        for weight in weights:
            if not 1 <= weight <= most:
                message = f"{self.name}: weight {weight} is not within 1..{most}"
                raise DataPlaneError("INVALID_ARGUMENT", message)
        size = len(weights) if self.counts_members else sum(weights)
        if limit and size > limit:
            counted = f"{size} members" if self.counts_members else f"weights add up to {size}"
            raise DataPlaneError(code, f"{self.name}: {counted}, {what} is {limit}")
