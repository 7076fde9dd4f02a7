"""Check whether the machine kept up: a scale model is only true while it does."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import psutil

from commands.cores import BusyShare, find_quota
from v1model.precedence import FORWARDING

SAMPLE_PERIOD_S = 0.5
SWITCH_SAMPLES = 5
"""Samples of a switch's threads for each sample of the machine: bursts that a switch can't follow are short.
"""
FAMILY_SAMPLES = 10
"""Number of samples of a switch after which its processes and threads are listed again."""

# Limits that a run may reach and still count. Emulated times are milliseconds: a host that wakes 25 ms late
# adds that to a GET. A machine without CPU to spare delays everything, unless what keeps it busy has lower
# precedence than the run. Timers then have to prove that it has.
MOST_CPU_SHARE = 0.9
MOST_BUSY_SAMPLES = 0.1
MOST_LATE_P99_MS = 25.0
MOST_LATE_BUSY_P99_MS = 10.0
"""Limit of lateness at the 99th percentile, in ms, on a machine without CPU to spare."""
MOST_BUSY_SWITCH = 0.02
"""Share of the time in which a switch's busiest thread may have no pause.

Packets then queue inside it, where a real switch has no queue. BMv2's median GET is five times that of the
embedded switch for that reason.
"""
MOST_CONTROL_SHARE = 0.03
"""Share of all cores that the controller may take: on a machine of its own it would take nothing from hosts.

`make run MODES=no_pool,phantom` measures whether this much shows in the figures.
"""


_FORWARDING = FORWARDING.encode()


class _Threads:
    """Busy time of the busiest thread of one process tree, from sample to sample.

    A thread is busy while it runs or waits for a CPU: packets queue in a switch that is kept from running as
    in one that can't run faster. If one thread is known to forward, only that one counts. Looking at all of
    them, ten times a second for twenty switches, takes 1 % of two cores.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._threads: list[str] = []
        self._samples = 0
        self._busy_ns: dict[str, int] = {}

    def busiest_s(self) -> float:
        """Return the busiest thread's busy seconds since the last call; 0 if its process has ended."""
        if self._samples % FAMILY_SAMPLES == 0:
            threads = [thread for pid in family_of(self._pid) for thread in _threads_of(pid)]
            forwarding = [thread for thread in threads if _read(f"{thread}/comm").strip() == _FORWARDING]
            self._threads = [f"{thread}/schedstat" for thread in forwarding or threads]
        self._samples += 1
        most_ns = 0
        for thread in self._threads:
            busy_ns = _busy_ns(thread)
            most_ns = max(most_ns, busy_ns - self._busy_ns.get(thread, busy_ns))
            self._busy_ns[thread] = busy_ns
        return most_ns / 1e9


def family_of(pid: int) -> list[int]:
    """Return a process id and those of all its descendants, read from the kernel's files of each thread.

    A look at all processes of the machine, for each of many switches, would take a tenth of a core.
    """
    family = [pid]
    for thread in _threads_of(pid):
        for child in _read(f"{thread}/children").split():
            family += family_of(int(child))
    return family


def _threads_of(pid: int) -> list[str]:
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            return [thread.path for thread in threads]
    except OSError:
        return []  # it has ended


def _busy_ns(schedstat: str) -> int:
    """Return the ns that a thread ran or waited for a CPU, by the scheduler's count; 0 if it has ended."""
    ran_ns, waited_ns, _ = _read(schedstat).split() or (b"0", b"0", b"0")
    return int(ran_ns) + int(waited_ns)


def _read(path: str) -> bytes:
    """Return a small file of the kernel, read in three system calls; b"" if its process has ended."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(file)


class CpuWatch:
    """Background sampler of the machine's CPU and the switches' threads.

    Use it as a context manager: it samples until the block ends, also when the block raises.
    """

    def __init__(self, switches: Iterable[int] = ()) -> None:
        """Start nothing yet. `switches` are process ids."""
        self._samples: list[float] = []
        self._switches = [_Threads(pid) for pid in switches]
        self._switch_samples: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def use(self) -> CpuUse:
        """Return the use so far; it is complete once the watch has ended."""
        if not self._samples:
            return CpuUse()
        return CpuUse(
            sum(self._samples) / len(self._samples),
            _busy_share(self._samples),
            _busy_share(self._switch_samples),
        )

    def _sample(self) -> None:
        share = BusyShare(find_quota())
        period_s = SAMPLE_PERIOD_S / SWITCH_SAMPLES
        number = 0
        sampled_s = time.monotonic()
        while not self._done.wait(period_s):
            number += 1
            if number % SWITCH_SAMPLES == 0:
                self._samples.append(share.take())
            now_s = time.monotonic()
            shares = [threads.busiest_s() / (now_s - sampled_s) for threads in self._switches]
            sampled_s = now_s
            if shares:
                self._switch_samples.append(max(shares))


def _busy_share(samples: list[float]) -> float:
    return sum(sample > MOST_CPU_SHARE for sample in samples) / len(samples) if samples else 0.0


@dataclass(frozen=True, slots=True)
class CpuTime:
    """CPU time in seconds, in programs and in the kernel on their behalf."""

    user_s: float = 0.0
    system_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Return the sum of both, in seconds."""
        return self.user_s + self.system_s

    def __sub__(self, before: CpuTime) -> CpuTime:
        return CpuTime(self.user_s - before.user_s, self.system_s - before.system_s)


def cpu_time(pids: Iterable[int]) -> CpuTime:
    """Return the CPU time that running processes have used so far, summed."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return CpuTime(sum(each.user for each in times), sum(each.system for each in times))


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Mean share of all cores in use, and the shares of samples in which almost no CPU was left."""

    mean: float = 0.0
    saturated: float = 0.0
    """Share of samples in which the machine was busy."""
    switch_saturated: float = 0.0
    """Share of samples in which the busiest thread of any switch was busy."""


@dataclass(frozen=True, slots=True)
class Strain:
    """Load that a run put on the machine."""

    cpu: CpuUse
    late_p99_ms: Mapping[str, float]
    """Lateness of timers by process: 99th percentile in ms."""
    dropped: Mapping[str, int]
    """Packets lost anywhere but in a modelled link, by place."""
    control: float = 0.0
    """Share of all cores that the controller took."""

    @property
    def latest_p99_ms(self) -> float:
        """Return the 99th percentile of lateness, in ms, of the process whose timers were latest."""
        return max(self.late_p99_ms.values(), default=0.0)

    def complaints(self) -> list[str]:
        """Return reasons why the figures don't count; empty if they do."""
        found = []
        busy = self.cpu.saturated > MOST_BUSY_SAMPLES
        if busy and self.latest_p99_ms > MOST_LATE_BUSY_P99_MS:
            found.append(
                f"CPU: over {MOST_CPU_SHARE:.0%} busy in {self.cpu.saturated:.0%} of the time "
                f"(at most {MOST_BUSY_SAMPLES:.0%}, or timers within {MOST_LATE_BUSY_P99_MS:g} ms at p99; "
                f"here {self.latest_p99_ms:.0f} ms)"
            )
        if self.cpu.switch_saturated > MOST_BUSY_SWITCH:
            found.append(
                f"switch: a thread of it ran or waited for a CPU over {MOST_CPU_SHARE:.0%} of the time in "
                f"{self.cpu.switch_saturated:.0%} of the samples (at most {MOST_BUSY_SWITCH:.0%}): packets "
                "queued in it"
            )
        late = {name: ms for name, ms in self.late_p99_ms.items() if ms > MOST_LATE_P99_MS}
        if late:
            worst = max(late, key=late.__getitem__)
            found.append(
                f"timers: {len(late)} processes woke late, {worst} by {late[worst]:.0f} ms at p99 "
                f"(at most {MOST_LATE_P99_MS:g} ms)"
            )
        if self.control > MOST_CONTROL_SHARE:
            found.append(
                f"controller: it took {self.control:.1%} of the CPU from the hosts (at most "
                f"{MOST_CONTROL_SHARE:.0%}; `make run MODES=no_pool,phantom` shows what that does to figures)"
            )
        found += [f"drops: {count} packets {place}" for place, count in self.dropped.items() if count]
        return found


def busy_complaints(shares: Mapping[str, float]) -> list[str]:
    """Return the parts of an experiment in which the machine was busy, by their mean share of all cores in
    use.
    """
    return [f"{name}: CPU {share:.0%}" for name, share in shares.items() if share > MOST_CPU_SHARE]


def advice(scale_given: bool = True, smallest_blocks: bool = False) -> str:
    """Return advice for a machine that did not keep up, without what is so already.

    `scale_given` says that the machine did not choose SCALE itself. `smallest_blocks` says that a block is
    one fragment already, so that a larger SCALE would make nothing smaller.
    """
    ways = ["end other programs here", "use fewer HOSTS", "choose a smaller SPEED"]
    if scale_given and not smallest_blocks:
        ways.insert(
            0, "leave out SCALE, so that the machine chooses it, or give a larger one (fewer packets)"
        )
    return f"What helps: {'; '.join(ways)}."
