"""What failed to load is remembered, within bounds."""

from __future__ import annotations

from hostlib.engine.failed_loads import MAX_REMEMBERED, REST_S, FailedLoads

A, B = b"a", b"b"


def test_what_fails_rests_only_if_it_was_found_in_between() -> None:
    failed = FailedLoads()
    for now_s in (1.0, 2.0):
        failed.add(A, now_s)
        assert A in failed
        assert not failed.rests(A, now_s)
    failed.found(A)
    failed.add(A, 3.0)
    assert failed.rests(A, 3.0)
    assert failed.rests(A, 2.9 + REST_S)
    assert not failed.rests(A, 3.0 + REST_S)
    assert not failed.rests(B, 3.0)
    failed.add(A, 4.0)  # was under way with the one before
    assert failed.rests(A, 3.9 + REST_S)


def test_what_was_stored_is_forgotten() -> None:
    failed = FailedLoads()
    failed.add(A, 1.0)
    failed.found(A)
    failed.add(A, 2.0)
    failed.discard(A)
    assert A not in failed
    assert not failed.rests(A, 2.0)


def test_memory_is_bounded_and_keeps_what_failed_last() -> None:
    failed = FailedLoads()
    for number in range(MAX_REMEMBERED + 5):
        failed.add(b"%d" % number, 0.0)
    failed.found(b"never failed")
    assert len(failed) == MAX_REMEMBERED
    assert b"4" not in failed
    assert b"5" in failed
