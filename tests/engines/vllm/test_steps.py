"""Which steps are sure, and when the others are settled."""

from __future__ import annotations

from engines.vllm.steps import MAX_UNSETTLED, StepLog


def test_steps_without_loads_are_sure() -> None:
    log = StepLog()
    assert all(log.begin(has_loads=False).is_sure for _ in range(3))
    assert log.in_flight == 3
    log.report(3)
    assert log.in_flight == 0


def test_a_step_with_loads_and_those_scheduled_before_its_report_wait_for_it() -> None:
    log = StepLog()
    assert not log.begin(has_loads=True).is_sure
    assert not log.begin(has_loads=False).is_sure
    log.report(1)
    assert log.settled == 1
    assert not log.begin(has_loads=False).is_sure  # it may build on the second, which is not settled
    log.report(2)
    log.report(3)
    assert log.begin(has_loads=False).is_sure
    assert not log.take_dropped()


def test_a_failed_load_drops_all_that_is_not_settled() -> None:
    log = StepLog()
    log.begin(has_loads=True)
    log.begin(has_loads=False)
    assert [step.number for step in log.drop()] == [1, 2]
    assert (log.settled, log.take_dropped(), log.take_dropped()) == (2, (1, 2), ())


def test_what_was_dropped_may_still_fail_so_that_nothing_that_builds_on_it_is_sure() -> None:
    log = StepLog()
    log.begin(has_loads=True)
    log.begin(has_loads=True)
    log.drop()
    log.report(1)
    assert not log.begin(has_loads=False).is_sure
    log.report(2)
    log.report(3)
    assert log.begin(has_loads=False).is_sure


def test_steps_before_one_that_came_back_are_lost_if_they_did_not() -> None:
    log = StepLog()
    for has_loads in (False, True, False):
        log.begin(has_loads=has_loads)
    assert log.lose(1) == []
    assert [(step.number, step.is_sure) for step in log.lose(3)] == [(1, True), (2, False)]
    assert log.lose(3) == []
    log.report(3)
    assert (log.reported, log.in_flight, log.lose(4)) == (3, 0, [])


def test_reports_that_never_come_are_noticed() -> None:
    log = StepLog()
    for _ in range(MAX_UNSETTLED + 1):
        assert not log.is_overdue()
        log.begin(has_loads=True)
    assert log.is_overdue()
