"""What a network has started, written down where `make clean` finds it if we die without cleaning up.

A file a network in /run/weir: one line a process, "pid start-time"; the start time (clock ticks since
boot, proc(5) field 22) tells our process from another that got its pid later.
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


class Remains:
    """The record of one network; removed when the network is gone."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = RUN_DIRECTORY / str(os.getpid()) / directory.name

    def __enter__(self) -> Remains:
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
    """Return when a process started, in clock ticks since boot; "" when there is none of that pid."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return after_name[19]


def records(directory: Path = RUN_DIRECTORY) -> Iterator[Path]:
    """Yield the records of all networks; those whose owner removes them meanwhile are left out."""
    for owner in _entries(directory):
        yield from _entries(owner)


def _entries(directory: Path) -> list[Path]:
    # Path.glob fails where a directory goes between two of its steps.
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lines(record: Path) -> list[str]:
    """The lines of a record; none when its owner has removed it, or has not written its own pid yet."""
    try:
        lines = record.read_text().splitlines()
    except FileNotFoundError:
        return []
    return lines if len(lines) > 1 else []


def running(directory: Path = RUN_DIRECTORY) -> list[Path]:
    """Working directories of networks whose owner still runs, newest first."""
    alive = []
    for record in records(directory):
        lines = _lines(record)
        if lines and (Path("/proc") / record.parent.name).exists():
            with contextlib.suppress(FileNotFoundError):
                alive.append((record.stat().st_mtime, lines[0].partition(" ")[2]))
    return [Path(work) for _, work in sorted(alive, reverse=True)]


def clean(directory: Path = RUN_DIRECTORY) -> int:
    """End the processes of networks whose owner died, remove what they left; returns how many records."""
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
    """End those of the recorded (pid, start time) that still run, and wait until they have ended."""
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
