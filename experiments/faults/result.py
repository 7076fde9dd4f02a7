"""What a case shows: operations by outcome, and how long they took before, during and after the fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.result import percentiles
from experiments.faults.load import REFUSED, RIGHT, WRONG

PHASES = ("before", "during", "after")
LEAST_SLOW_S = 0.3
"""An operation that takes longer, and longer than twice the p99 before the fault, counts as disturbed."""


@dataclass(frozen=True, slots=True)
class Result:
    """One case, as summary.json has it."""

    fault: str
    topology: str
    operations: int
    failed: int
    refused: int
    wrong_blocks: int
    """Read while the fault was there, or afterwards."""
    lost_blocks: int
    """Of those acknowledged, when everything had started again."""
    evictions: int
    """Blocks that left pools and storage nodes for others: none, or a loss could be one of them."""
    suspicions: int
    """How often a node took a home for dead, of the node with most: each costs it at most 300 ms."""
    recover_s: float
    """From the end of the fault to the end of the last operation that failed or was slow; 0 without one."""
    p99_ms: Mapping[str, float]
    """By phase, in which operations were due."""
    slowest_ms: float
    cpu: float
    """Mean share of the machine in use."""
    why: Mapping[str, int]
    """What operations failed of, by the words of the error."""
    broken_off: str = ""
    """Why the case did not come to its end: a process of it ended, or was silent."""

    def missed(self, may_fail: bool, may_refuse: bool) -> list[str]:
        """Return the goals that are not met."""
        if self.broken_off:
            return [f"broken off: {self.broken_off}"]
        found = []
        if self.failed and not may_fail:
            found.append(f"{self.failed} operations failed")
        if self.refused and not may_refuse:
            found.append(f"{self.refused} PUTs were refused")
        if self.wrong_blocks:
            found.append(f"{self.wrong_blocks} blocks were wrong")
        if self.lost_blocks:
            found.append(f"{self.lost_blocks} blocks are lost")
        if self.evictions:
            found.append(f"{self.evictions} blocks were evicted")
        if not self.operations:
            found.append("nothing was measured")
        return found


@dataclass(frozen=True, slots=True)
class Played:
    """What a case is judged by; times are CLOCK_MONOTONIC."""

    operations: Sequence[Mapping[str, Any]]
    fault_s: float
    healed_s: float
    wrong_afterwards: int
    lost: Sequence[str]
    cpu: float
    evictions: int = 0
    suspicions: int = 0


def evaluate(fault: str, topology: str, played: Played) -> Result:
    """Evaluate one case."""
    operations = played.operations
    outcomes = Counter(str(one["outcome"]) for one in operations)
    took_ms: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for one in operations:
        took_ms[_phase(one["start_s"], played)].append(1000 * (one["end_s"] - one["start_s"]))
    p99_ms = {phase: percentiles(times).p99 for phase, times in took_ms.items()}
    slow_s = max(LEAST_SLOW_S, 2 * p99_ms["before"] / 1000)
    disturbed = (
        one["end_s"] - played.healed_s
        for one in operations
        if one["start_s"] >= played.fault_s
        and (one["outcome"] not in (RIGHT, REFUSED) or one["end_s"] - one["start_s"] > slow_s)
    )
    right, refused, wrong = outcomes[RIGHT], outcomes[REFUSED], outcomes[WRONG]
    return Result(
        fault,
        topology,
        len(operations),
        len(operations) - right - refused - wrong,
        refused,
        wrong + played.wrong_afterwards,
        len(played.lost),
        played.evictions,
        played.suspicions,
        round(max(0.0, max(disturbed, default=0.0)), 2),
        p99_ms,
        round(max((ms for times in took_ms.values() for ms in times), default=0.0), 1),
        round(played.cpu, 2),
        reasons(operations, played.lost),
    )


def broken_off(fault: str, topology: str, why: str) -> Result:
    """Return a case that was not measured to its end."""
    times = dict.fromkeys(PHASES, 0.0)
    return Result(fault, topology, 0, 0, 0, 0, 0, 0, 0, 0.0, times, 0.0, 0.0, {}, why)


def _phase(start_s: float, played: Played) -> str:
    if start_s < played.fault_s:
        return "before"
    return "during" if start_s < played.healed_s else "after"


def reasons(operations: Iterable[Mapping[str, Any]], lost: Iterable[str]) -> dict[str, int]:
    """Return what operations failed of and blocks were lost of, the most frequent first."""
    said = (
        f"{one['kind']} {one['outcome']}: {_without_key(one['detail'])}"
        for one in operations
        if one["outcome"] != RIGHT
    )
    return dict(Counter([*said, *(f"lost: {_without_key(detail)}" for detail in lost)]).most_common(8))


def _without_key(detail: str) -> str:
    """Errors begin with the block that they are about."""
    return detail.split(": ", 1)[-1]
