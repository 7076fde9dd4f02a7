"""Precedence over other programs, so that they disturb a measurement less.

Where the kernel shares the CPU between sessions before it looks at processes (sched(7), autogroup), a session
has to come first, too. Engines and generator have one each: in a common one they would share its weight.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HIGHEST: Final = -20


@contextlib.contextmanager
def precedence() -> Iterator[None]:
    """This process and what it starts meanwhile come first; needs root."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with _session_first(os.getpid()):
        os.setpriority(os.PRIO_PROCESS, 0, HIGHEST)
        try:
            yield
        finally:
            os.setpriority(os.PRIO_PROCESS, 0, own)


def comes_first() -> bool:
    """Whether this process has taken precedence."""
    return os.getpriority(os.PRIO_PROCESS, 0) == HIGHEST


def put_session_first(pid: int) -> None:
    """The session that this process leads comes first."""
    with contextlib.suppress(OSError):  # no such groups here, or it has ended already
        _autogroup(pid).write_text(str(HIGHEST))


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
    """None where there are no such groups. The file reads like "/autogroup-85 nice 0"."""
    try:
        return int(_autogroup(pid).read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def _autogroup(pid: int) -> Path:
    return Path(f"/proc/{pid}/autogroup")
