"""A core for an attacker, and the others for everybody else: what then slows the others down is what it
sends, not the CPU time that sending takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from contextlib import suppress
from pathlib import Path


def apart() -> tuple[set[int], set[int]] | None:
    """Return one of the cores that this process may use, and the rest; None if there is but one."""
    cores = sorted(os.sched_getaffinity(0))
    return ({cores[-1]}, set(cores[:-1])) if len(cores) > 1 else None


def pin(pids: Iterable[int], cores: Set[int]) -> None:
    """Have all threads of these processes run on those cores alone."""
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)
