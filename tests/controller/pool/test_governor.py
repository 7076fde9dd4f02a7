"""The threshold of reports follows their rate."""

from __future__ import annotations

from controller.pool.governor import ReportGovernor


def run(governor: ReportGovernor, reports_per_s: list[int]) -> list[int]:
    governor.adjust(0.0)
    thresholds = []
    for second, reports in enumerate(reports_per_s, 1):
        governor.reported(reports)
        governor.adjust(float(second))
        thresholds.append(governor.count)
    return thresholds


def test_it_doubles_while_there_are_too_many_and_comes_back() -> None:
    assert run(ReportGovernor(2, 100), [101, 500, 80, 20, 20, 20]) == [4, 8, 8, 4, 2, 2]


def test_it_ends_at_what_the_sketch_can_count() -> None:
    assert run(ReportGovernor(2, 1), [1000] * 20)[-1] == 0x8000


def test_without_reports_from_the_start_it_stays_off() -> None:
    assert run(ReportGovernor(0, 10), [0, 50, 0]) == [0, 0, 0]


def test_a_change_is_said_once() -> None:
    governor = ReportGovernor(2, 10)
    assert governor.adjust(0.0) is None
    governor.reported(100)
    assert governor.adjust(0.5) is None
    assert governor.adjust(1.0) == 4
    assert governor.adjust(1.1) is None
