"""A control group (cgroups(7)) that limits the CPU of what runs on a server of a test."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION_1 = Path("/sys/fs/cgroup/cpu")
VERSION_1_COUNTED = Path("/sys/fs/cgroup/cpuacct")
VERSION_2 = Path("/sys/fs/cgroup")
PERIOD_US = 10_000
"""A group that has used its quota waits for the rest of the period. With the kernel's usual 100 ms, timers
would be late by more than a run allows."""
WEIGHT = 20
"""Of a group, over one of the kernel's usual weight: dozens of processes, each a session, are in it."""
LEAST_CORES = 0.1
"""The least quota of such a period is 1 ms."""
GONE_WITHIN_S = 10.0
POLL_S = 0.05


@contextmanager
def cpu_group(name: str, cores: float) -> Iterator[tuple[Path, ...]]:
    """A group of this name with so many cores; returns the files that take the ids of its processes.

    Raises OSError where no such group can be made. Its processes have to be gone when it is left.
    """
    assert cores >= LEAST_CORES
    quota_us = round(cores * PERIOD_US)
    if (VERSION_1 / "cpu.cfs_quota_us").exists():
        folders: tuple[Path, ...] = (VERSION_1 / name, VERSION_1_COUNTED / name)
        limits = {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}
        limits["cpu.shares"] = f"{1024 * WEIGHT}"
    else:
        (VERSION_2 / "cgroup.subtree_control").write_text("+cpu")
        folders = (VERSION_2 / name,)
        limits = {"cpu.max": f"{quota_us} {PERIOD_US}", "cpu.weight": f"{100 * WEIGHT}"}
    try:
        for folder in folders:
            _remove(folder)
            folder.mkdir()
        for file, value in limits.items():
            (folders[0] / file).write_text(value)
        yield tuple(folder / "cgroup.procs" for folder in folders)
    finally:
        for folder in folders:
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a group; the kernel takes a moment to notice that its last process has ended."""
    deadline_s = time.monotonic() + GONE_WITHIN_S
    while folder.exists():
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        assert time.monotonic() < deadline_s, f"{folder} still has processes"
        time.sleep(POLL_S)
