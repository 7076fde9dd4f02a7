"""Functions that wait for, kill or halt child processes of a cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator

from emulator.processes import LineProcess, ProcessError

POLL_S = 0.02


def wait_for_event(event: str, processes: Iterable[LineProcess], timeout_s: float) -> None:
    """Wait until each process has sent `event`; raises ProcessError if one ends or `timeout_s` is over."""
    deadline_s = time.monotonic() + timeout_s
    waiting = list(processes)
    while waiting := [process for process in waiting if event not in process.last_events]:
        for process in waiting:
            if process.process.poll() is not None:
                raise process.failure()
        if time.monotonic() > deadline_s:
            names = ", ".join(process.name for process in waiting)
            raise ProcessError(f"{names} did not say '{event}' within {timeout_s:g} s")
        time.sleep(POLL_S)


def kill(process: LineProcess) -> None:
    """Kill a process (SIGKILL), and wait until it is gone."""
    process.stopping = True
    process.process.kill()
    process.process.wait()


@contextlib.contextmanager
def halted(process: LineProcess) -> Iterator[None]:
    """Halt a process (SIGSTOP) during the `with` block."""
    os.kill(process.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.process.pid, signal.SIGCONT)
