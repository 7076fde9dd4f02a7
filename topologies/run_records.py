"""Record of what a network has started, which `make clean` reads if we die without cleaning up.

Each network has a file in /run/weir with one line per process, "pid start-time". The start time, in clock
ticks since boot (proc(5), field 22), distinguishes our process from a later one with the same pid.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import psutil

KILL_TIMEOUT_S = 5.0
RUN_DIRECTORY = Path("/run/weir")


class RunRecord:
    """Record of one network; it is removed when the network is gone."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = RUN_DIRECTORY / str(os.getpid()) / directory.name

    def __enter__(self) -> RunRecord:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f"directory {self.directory}\n")
        self.add_process(os.getpid())
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()

    def add_process(self, pid: int) -> None:
        """Record a process that we started."""
        with self.path.open("a") as record:
            record.write(f"{pid} {start_time(pid)}\n")


def start_time(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; "" if there is none with that pid."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return after_name[19]


def records(directory: Path = RUN_DIRECTORY) -> Iterator[Path]:
    """Yield the records of all networks, except those whose owner removes them meanwhile."""
    for owner in _entries(directory):
        yield from _entries(owner)


def _entries(directory: Path) -> list[Path]:
    # Path.glob fails if a directory disappears between two of its steps.
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lines(record: Path) -> list[str]:
    """Return the lines of a record; none if its owner removed it or has not yet written its own pid."""
    try:
        lines = record.read_text().splitlines()
    except FileNotFoundError:
        return []
    return lines if len(lines) > 1 else []


def running(directory: Path = RUN_DIRECTORY) -> list[Path]:
    """Return the working folders of networks whose owner still runs, newest first."""
    alive = []
    for record in records(directory):
        lines = _lines(record)
        if lines and (Path("/proc") / record.parent.name).exists():
            with contextlib.suppress(FileNotFoundError):
                alive.append((record.stat().st_mtime, lines[0].partition(" ")[2]))
    return [Path(work) for _, work in sorted(alive, reverse=True)]


def clean(directory: Path = RUN_DIRECTORY) -> int:
    """End the processes of networks whose owner died, delete their files, and return how many there were."""
    cleaned = 0
    for record in records(directory):
        lines = _lines(record)
        if not lines:
            continue
        owner = lines[1].split()
        if start_time(int(owner[0])) == owner[1]:
            print(f"left alone: the network of running process {owner[0]}")
            continue
        _kill(line.split() for line in lines[2:] if len(line.split()) == 2)
        shutil.rmtree(lines[0].partition(" ")[2], ignore_errors=True)
        record.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            record.parent.rmdir()
        cleaned += 1
    return cleaned


def _kill(recorded: Iterable[Sequence[str]]) -> None:
    """End the recorded (pid, start time) that still run, and wait until they have ended."""
    ours = []
    for pid, started in recorded:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            if start_time(process.pid) == started:
                process.kill()
                ours.append(process)
    psutil.wait_procs(ours, timeout=KILL_TIMEOUT_S)


if __name__ == "__main__":
    print(f"cleaned what {clean()} crashed networks left")
    sys.exit(0)
