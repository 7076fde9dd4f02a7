"""Forwarding before control: the kernel's order between the threads of a switch process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from pathlib import Path
from typing import Final

FORWARDING: Final = "v1model-forward"
"""What the kernel calls the thread that forwards (15 characters at most)."""

TURN_NS: Final = 100_000
"""After so long another thread gets the CPU, if one waits to which time is due. The kernel's own turns last
milliseconds, in which a block could have come."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_stepped_back = False


def step_back() -> None:
    """This thread, and those that it starts from now on, no longer interrupt others when they wake.

    They run as batch work (sched(7), SCHED_BATCH), in short turns: a P4Runtime request waits until forwarding
    pauses.
    """
    global _stepped_back  # noqa: PLW0603  # as the scheduling that it stands for, it is the process's
    take_short_turns()
    _stepped_back = True


def take_short_turns(thread: int = 0) -> None:
    """A thread (0: this one), and those that it starts from now on, are batch work in turns of TURN_NS.

    Linux before 6.12 has no turns of a thread's own: there it is batch work alone. OSError.
    """
    os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    wanted = Attributes(
        size=ctypes.sizeof(Attributes),
        policy=os.SCHED_BATCH,
        nice=os.getpriority(os.PRIO_PROCESS, thread),
        runtime=TURN_NS,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, thread, ctypes.byref(wanted), 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Attributes(ctypes.Structure):
    """struct sched_attr (sched_setattr(2)), its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def come_forward() -> None:
    """Undoes `step_back` for this thread, which forwards, and has the kernel know it by name."""
    with contextlib.suppress(OSError):  # nothing depends on it but who watches
        Path("/proc/thread-self/comm").write_text(FORWARDING)
    if _stepped_back:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
