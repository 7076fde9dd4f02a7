"""Separation of cores: one for an attacker, the rest for all others.

Then only the attacker's packets can slow others down, not the CPU time of sending them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from contextlib import suppress
from pathlib import Path


def split_cores() -> tuple[set[int], set[int]] | None:
    """Return one of the cores that this process may use, and the rest; None if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return ({cores[-1]}, set(cores[:-1])) if len(cores) > 1 else None


def pin(pids: Iterable[int], cores: Set[int]) -> None:
    """Let all threads of these processes run only on these cores."""
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)
