"""What is made of the operations of a case."""

from __future__ import annotations

from typing import Any

from experiments.faults.load import FAILED, MISSING, REFUSED, RIGHT, SKIPPED, WRONG
from experiments.faults.result import Played, Result, evaluate

FAULT_S, HEALED_S = 10.0, 20.0


def operation(start_s: float, took_s: float = 0.01, outcome: str = RIGHT) -> dict[str, Any]:
    return {
        "kind": "get",
        "start_s": start_s,
        "end_s": start_s + took_s,
        "outcome": outcome,
        "detail": "" if outcome == RIGHT else "block 00: because",
    }


def result(*operations: dict[str, Any], wrong: int = 0, lost: tuple[str, ...] = ()) -> Result:
    return evaluate("none", "star", Played(operations, FAULT_S, HEALED_S, wrong, lost, 0.5))


def test_operations_count_by_outcome_and_nothing_that_is_not_right_is_forgotten() -> None:
    outcomes = (RIGHT, FAILED, MISSING, SKIPPED, REFUSED, WRONG)
    found = result(*(operation(15.0, outcome=outcome) for outcome in outcomes), wrong=2, lost=("a", "b"))
    assert (found.operations, found.failed, found.refused) == (6, 3, 1)
    assert (found.wrong_blocks, found.lost_blocks) == (3, 2)
    assert len(found.missed(may_fail=False, may_refuse=False)) == 4
    assert len(found.missed(may_fail=True, may_refuse=True)) == 2


def test_an_operation_belongs_to_the_phase_in_which_it_was_due() -> None:
    found = result(operation(9.9, 0.2), operation(10.0, 15.0), operation(20.0, 0.03))
    assert found.p99_ms == {"before": 200.0, "during": 15000.0, "after": 30.0}


def test_recovery_ends_with_the_last_operation_that_failed_or_was_slow() -> None:
    assert result(operation(9.0), operation(15.0), operation(25.0)).recover_s == 0
    assert result(operation(9.0), operation(19.0, 3.0), operation(25.0)).recover_s == 2.0
    assert result(operation(9.0), operation(21.0, outcome=FAILED), operation(25.0)).recover_s == 1.01


def test_a_case_without_operations_has_missed_its_goal() -> None:
    assert result().missed(may_fail=True, may_refuse=True) == ["nothing was measured"]
