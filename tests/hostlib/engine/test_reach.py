"""A process that does not answer is left alone for longer and longer."""

from __future__ import annotations

from hostlib.engine.reach import LONGEST_REST_S, Reach


def test_rests_double_up_to_a_minute_and_end_with_an_answer() -> None:
    reach, now_s, rests = Reach(5.0), 100.0, []
    for _ in range(6):
        reach.failed(now_s)
        rested_s = next(s for s in range(1, 100) if reach.allows(now_s + s))
        rests.append(rested_s)
        now_s += rested_s
    assert rests == [5, 10, 20, 40, LONGEST_REST_S, LONGEST_REST_S]
    reach.failed(now_s)
    reach.answered()
    assert reach.allows(now_s)


def test_requests_that_were_under_way_together_fail_once() -> None:
    reach = Reach(5.0)
    for now_s in (0.0, 1.0, 4.9):
        reach.failed(now_s)
    assert not reach.allows(4.9)
    assert reach.allows(5.0)
