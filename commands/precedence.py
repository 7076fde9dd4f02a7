"""CPU precedence between programs: the measured ones first, the controller behind the hosts.

The kernel may share the CPU between sessions before it looks at processes (sched(7), autogroup). Then
niceness counts only within a session, so the session's own must be set, too. Engines and generator of a
benchmark have a session each: in a common one they would share its weight.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HIGHEST: Final = -20
LOW_PRIORITY: Final = 10
LOW_PRIORITY_COMMAND: Final = ("chrt", "--batch", "0", "nice", "-n", str(LOW_PRIORITY))
"""Prefix of a command whose processes should not preempt others on waking, and get a tenth of a full CPU.

Without `put_session_last` that holds within their session only.
"""


@contextlib.contextmanager
def precedence() -> Iterator[None]:
    """Put this process and what it starts meanwhile first; needs root."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with _session_first(os.getpid()):
        os.setpriority(os.PRIO_PROCESS, 0, HIGHEST)
        try:
            yield
        finally:
            os.setpriority(os.PRIO_PROCESS, 0, own)


def comes_first() -> bool:
    """Return whether this process has taken precedence."""
    return os.getpriority(os.PRIO_PROCESS, 0) == HIGHEST


def put_session_first(pid: int) -> None:
    """Put the session that process `pid` leads first."""
    _set_session_nice(pid, HIGHEST)


def put_session_last(pid: int) -> None:
    """Put the session that process `pid` leads behind those of normal precedence."""
    _set_session_nice(pid, LOW_PRIORITY)


def _set_session_nice(pid: int, nice: int) -> None:
    with contextlib.suppress(OSError):  # no such groups here, or it has ended already
        _autogroup(pid).write_text(str(nice))


@contextlib.contextmanager
def _session_first(pid: int) -> Iterator[None]:
    before = _session_nice(pid)
    put_session_first(pid)
    try:
        yield
    finally:
        if before is not None:
            _autogroup(pid).write_text(str(before))


def _session_nice(pid: int) -> int | None:
    """Return the session's niceness, or None if the kernel has no autogroups.

    The file reads like "/autogroup-85 nice 0".
    """
    try:
        return int(_autogroup(pid).read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def _autogroup(pid: int) -> Path:
    return Path(f"/proc/{pid}/autogroup")
