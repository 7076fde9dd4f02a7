"""Share of the machine's CPU that this process may use.

Containers and services may have a quota. The number of cores that the operating system reports is the
machine's and ignores it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Quota:
    """CPU that a control group (cgroups(7)) lets its processes use together."""

    cores: float
    usage: Path
    """File that counts the CPU time that they used."""

    def used_s(self) -> float:
        """Return the CPU time in seconds that they used so far; 0 if the kernel does not count it."""
        try:
            text = self.usage.read_text()
        except OSError:
            return 0.0
        if self.usage.name == "cpuacct.usage":
            return int(text) / 1e9
        counted = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
        return int(counted.get("usage_usec", 0)) / 1e6


def find_quota(cgroups: Path = CGROUPS, own: Path = OWN) -> Quota | None:
    """Return the tightest quota of this process' control groups and those above them, or None."""
    found = []
    for version, path in _groups(own):
        top = cgroups if version == 2 else cgroups / "cpu"
        for folder in _upwards(top, path):
            cores = _cores(folder)
            if cores is not None:
                counted = folder / "cpu.stat" if version == 2 else _counter(cgroups, folder)
                found.append(Quota(cores, counted))
    return min(found, key=lambda quota: quota.cores, default=None)


def usable_cores(cgroups: Path = CGROUPS, own: Path = OWN) -> float:
    """Return how many cores this process may use at a time, by quotas and affinity."""
    cores = float(len(os.sched_getaffinity(0)))
    quota = find_quota(cgroups, own)
    return cores if quota is None else min(cores, quota.cores)


def whole_cores() -> int:
    """Return how many processes can compute at a time: the usable cores, at least one."""
    return max(1, int(usable_cores()))


class BusyShare:
    """Share of the usable CPU that is busy between two calls.

    It is that of the whole machine or, with a quota, the used share of the quota if that is higher: whoever
    has used it up waits while the machine has idle cores.
    """

    def __init__(self, quota: Quota | None) -> None:
        self._quota = quota
        psutil.cpu_percent()  # measures since this thread's last call; the first returns 0
        self._asked_s = time.monotonic()
        self._used_s = 0.0 if quota is None else quota.used_s()

    def take(self) -> float:
        """Return the busy share since the last call, 0 to 1."""
        machine = psutil.cpu_percent() / 100
        if self._quota is None:
            return machine
        now_s, used_s = time.monotonic(), self._quota.used_s()
        passed_s = max(1e-3, now_s - self._asked_s)
        share = (used_s - self._used_s) / passed_s / self._quota.cores
        self._asked_s, self._used_s = now_s, used_s
        return min(1.0, max(machine, share))


def _groups(own: Path) -> list[tuple[int, str]]:
    """Return (version of cgroups, path) of the groups that may limit the CPU."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            found.append((2, path))
        elif "cpu" in controllers.split(","):
            found.append((1, path))
    return found


def _upwards(top: Path, path: str) -> list[Path]:
    """Return the folder of a group and all above it; in a container, whose paths differ, only the top."""
    folder = top / path.lstrip("/")
    within = [one for one in (folder, *folder.parents) if one == top or top in one.parents]
    return within or [top]


def _cores(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else None
    except (OSError, ValueError):
        return None


def _counter(cgroups: Path, folder: Path) -> Path:
    """Return the counter of a group of version 1; its controller may be mounted apart from that of quotas."""
    beside = folder / "cpuacct.usage"
    apart = cgroups / "cpuacct" / folder.relative_to(cgroups / "cpu") / beside.name
    return beside if beside.exists() else apart
