"""What counts as an attack that succeeded."""

from __future__ import annotations

import pytest

from experiments.faults.intruders import Result, broken_off


def result(failed: int = 0, p99_ms: float = 50.0, cpu: float = 0.5, failed_sink: int = 0) -> Result:
    return Result("garbage", 4321, 100, failed, failed_sink, 0, 0, 0, 10.0, p99_ms, 0, cpu, {})


def test_who_is_much_slower_under_attack_is_said_so_where_the_machine_kept_up() -> None:
    assert result().missed() == ["p99 50 ms, with a sink 10 ms"]
    assert result().remarks() == []
    assert result(p99_ms=19.0).missed() == []


def test_what_is_only_slower_is_measured_once_more() -> None:
    assert result().is_only_slower()
    assert not result(failed=3).is_only_slower()
    assert not result(p99_ms=19.0).is_only_slower()
    assert not result(cpu=0.95).is_only_slower()


def test_times_on_a_busy_machine_are_said_and_not_judged() -> None:
    assert result(cpu=0.95).missed() == []
    (remark,) = result(cpu=0.95).remarks()
    assert "95% busy" in remark


@pytest.mark.parametrize("cpu", [0.5, 1.0])
def test_failures_count_on_any_machine(cpu: float) -> None:
    assert result(failed=3, p99_ms=10.0, cpu=cpu).missed() == ["3 operations of others failed"]


def test_what_fails_as_often_without_the_attack_is_said_and_not_judged() -> None:
    starved = result(failed=6, p99_ms=10.0, failed_sink=5)
    assert starved.missed() == []
    assert starved.remarks() == ["6 operations failed, and 5 with a sink: not judged"]
    assert result(failed=11, p99_ms=10.0, failed_sink=5).missed() == ["11 operations of others failed"]


def test_an_attack_that_was_broken_off_is_a_missed_goal_and_says_why() -> None:
    assert broken_off("puts", "node1 ended").missed() == ["broken off: node1 ended"]
