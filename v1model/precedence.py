"""Precedence of forwarding over control between the threads of a switch process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

FORWARDING: Final = "v1model-forward"
"""Name of the forwarding thread in the kernel (15 characters at most)."""

_stepped_back = False


def step_back() -> None:
    """Keep this thread, and those that it starts later, from preempting others when they wake.

    They run as batch work (sched(7), SCHED_BATCH): a P4Runtime request waits until forwarding pauses.
    """
    global _stepped_back  # noqa: PLW0603  # as the scheduling that it stands for, it is the process's
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    _stepped_back = True


def come_forward() -> None:
    """Undo `step_back` for this thread, which forwards, and set its name in the kernel."""
    with contextlib.suppress(OSError):  # only observers depend on it
        Path("/proc/thread-self/comm").write_text(FORWARDING)
    if _stepped_back:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
