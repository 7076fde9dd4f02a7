"""Jobs over several processes."""

import os
import signal
import subprocess
import sys

import pytest

from commands.parallel import run_all


def test_results_are_in_the_order_of_the_jobs_and_each_is_counted() -> None:
    added, finished = 10, []
    assert run_all(lambda job: job + added, [3, 1, 2], 2, lambda: finished.append(1)) == [13, 11, 12]
    assert len(finished) == 3


def test_a_failure_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        run_all(lambda job: 1 // job, [1, 0], 2, lambda: None)


BUSY = """
import os, time
from commands.interrupt import raise_on_signals
from commands.parallel import run_all

def work(job):
    os.write(1, b"begun\\n")
    time.sleep(600)

raise_on_signals()
run_all(work, [1, 2, 3], 2, lambda: None)
"""


@pytest.mark.parametrize("everybody", [True, False], ids=["all processes", "the first one alone"])
def test_an_interrupt_ends_jobs_that_run_also_when_it_comes_again_and_again(everybody: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert [process.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
            for _ in range(3):
                (os.killpg if everybody else os.kill)(process.pid, signal.SIGINT)
            # At its end only once every process that could write to it has gone.
            assert b"KeyboardInterrupt" in process.communicate(timeout=30)[1]
        finally:
            _end_session(process.pid)


def _end_session(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
