"""The thread that forwards comes before those that serve P4Runtime."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
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


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the system call")
def test_batch_work_runs_in_short_turns_where_the_kernel_has_them() -> None:
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    precedence.take_short_turns()
    found = precedence.Attributes()
    assert not ctypes.CDLL(None).syscall(315, 0, ctypes.byref(found), ctypes.sizeof(found), 0)
    assert (found.policy, found.nice) == (os.SCHED_BATCH, nice)
    assert found.runtime in {0, precedence.TURN_NS}


def test_a_thread_that_has_ended_is_an_error() -> None:
    with subprocess.Popen(("true",)) as ended:
        ended.wait()
    with pytest.raises(OSError, match="No such process"):
        precedence.take_short_turns(ended.pid)
