"""Precedence is taken for a while and given back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.precedence import (
    HIGHEST,
    LOW_PRIORITY,
    LOW_PRIORITY_COMMAND,
    precedence,
    put_session_first,
    put_session_last,
)

AUTOGROUP = Path("/proc/self/autogroup")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a higher priority needs root")


@needs_root
@pytest.mark.root
def test_what_is_started_meanwhile_comes_first() -> None:
    before, session = os.getpriority(os.PRIO_PROCESS, 0), AUTOGROUP.exists() and AUTOGROUP.read_text()
    with precedence():
        child = subprocess.run(("nice",), capture_output=True, text=True, check=True)
        assert int(child.stdout) == HIGHEST
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    assert (AUTOGROUP.exists() and AUTOGROUP.read_text()) == session


@needs_root
@pytest.mark.root
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the kernel has no groups by session")
def test_a_session_that_was_started_comes_first() -> None:
    with subprocess.Popen(("sleep", "infinity"), start_new_session=True) as child:
        put_session_first(child.pid)
        assert Path(f"/proc/{child.pid}/autogroup").read_text().split()[-1] == str(HIGHEST)
        child.kill()


@needs_root
@pytest.mark.root
def test_a_command_that_stands_behind_is_batch_work() -> None:
    show = (sys.executable, "-c", "import os; print(os.sched_getscheduler(0), os.getpriority(0, 0))")
    with subprocess.Popen(
        (*LOW_PRIORITY_COMMAND, *show), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        said, _ = child.communicate()
    assert said.split() == [str(os.SCHED_BATCH), str(os.getpriority(os.PRIO_PROCESS, 0) + LOW_PRIORITY)]


@needs_root
@pytest.mark.root
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the kernel has no groups by session")
def test_a_session_that_was_started_stands_behind() -> None:
    with subprocess.Popen(("sleep", "infinity"), start_new_session=True) as child:
        put_session_last(child.pid)
        assert Path(f"/proc/{child.pid}/autogroup").read_text().split()[-1] == str(LOW_PRIORITY)
        child.kill()
