"""The thread that forwards comes before those that serve P4Runtime."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from v1model import precedence


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.sched_getscheduler(0)
    monkeypatch.setattr(precedence, "_stepped_back", False)
    yield
    os.sched_setscheduler(0, before, os.sched_param(0))


def scheduling_of_a_thread(*steps: str) -> int:
    found: list[int] = []

    def run() -> None:
        for step in steps:
            getattr(precedence, step)()
        found.append(os.sched_getscheduler(0))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_threads_that_serve_are_batch_work_and_the_one_that_forwards_is_not() -> None:
    precedence.step_back()
    assert scheduling_of_a_thread() == os.SCHED_BATCH
    assert scheduling_of_a_thread("come_forward") == os.SCHED_OTHER


def test_a_process_that_never_stepped_back_is_left_as_it_is() -> None:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    assert scheduling_of_a_thread("come_forward") == os.SCHED_BATCH


def test_the_kernel_knows_the_thread_that_forwards_by_name() -> None:
    names: list[str] = []

    def run() -> None:
        precedence.come_forward()
        names.append(Path("/proc/thread-self/comm").read_text().strip())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert names == [precedence.FORWARDING]
