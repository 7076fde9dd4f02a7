"""Result of a case: operations by outcome, and their latency before, during and after the fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.result import percentiles
from experiments.faults.load import REFUSED, RIGHT, WRONG

PHASES = ("before", "during", "after")
LEAST_SLOW_S = 0.3
"""Seconds; an operation that takes longer, and longer than twice the p99 before the fault, is disturbed."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one case, as summary.json has it."""

    fault: str
    topology: str
    operations: int
    failed: int
    refused: int
    wrong_blocks: int
    """Number of wrong blocks that were read, during the load or in the check at the end."""
    lost_blocks: int
    """Number of acknowledged blocks that could not be read after everything had started again."""
    evictions: int
    """Number of blocks that pools and storage nodes evicted; it must be 0, or a loss could be an eviction."""
    suspicions: int
    """Times that a node suspected a home of failure, the most of any node; each costs at most 300 ms."""
    recover_s: float
    """Seconds from the fault's end to that of the last operation that failed or was slow; 0 without any."""
    p99_ms: Mapping[str, float]
    """p99 of operations by the phase in which they were due."""
    slowest_ms: float
    cpu: float
    """Mean share of the machine's CPU time in use."""
    why: Mapping[str, int]
    """Number of operations that failed, by text of the error."""
    broken_off: str = ""
    """Reason why the case broke off, such as a process that ended or was silent; empty if it did not."""

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
    """Measurements of a case; times are CLOCK_MONOTONIC."""

    operations: Sequence[Mapping[str, Any]]
    fault_s: float
    fault_end_s: float
    wrong_afterwards: int
    lost: Sequence[str]
    cpu: float
    evictions: int = 0
    suspicions: int = 0


def evaluate(fault: str, topology: str, played: Played) -> Result:
    """Return the result of one case."""
    operations = played.operations
    outcomes = Counter(str(one["outcome"]) for one in operations)
    took_ms: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for one in operations:
        took_ms[_phase(one["start_s"], played)].append(1000 * (one["end_s"] - one["start_s"]))
    p99_ms = {phase: percentiles(times).p99 for phase, times in took_ms.items()}
    slow_s = max(LEAST_SLOW_S, 2 * p99_ms["before"] / 1000)
    disturbed = (
        one["end_s"] - played.fault_end_s
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
    """Return the result of a case that was not measured to its end."""
    times = dict.fromkeys(PHASES, 0.0)
    return Result(fault, topology, 0, 0, 0, 0, 0, 0, 0, 0.0, times, 0.0, 0.0, {}, why)


def _phase(start_s: float, played: Played) -> str:
    if start_s < played.fault_s:
        return "before"
    return "during" if start_s < played.fault_end_s else "after"


def reasons(operations: Iterable[Mapping[str, Any]], lost: Iterable[str]) -> dict[str, int]:
    """Return the eight most frequent texts of failed operations and lost blocks, with their counts."""
    texts = (
        f"{one['kind']} {one['outcome']}: {_without_key(one['detail'])}"
        for one in operations
        if one["outcome"] != RIGHT
    )
    return dict(Counter([*texts, *(f"lost: {_without_key(detail)}" for detail in lost)]).most_common(8))


def _without_key(detail: str) -> str:
    """Return an error's text without the block that it begins with."""
    return detail.split(": ", 1)[-1]
