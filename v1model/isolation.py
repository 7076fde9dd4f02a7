"""Work on many files, each in a process of its own with a time limit.

So no crash or endless loop of one harms the others.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    # Work on a file; returns (result, reason).
    Work = Callable[[Path], tuple[str, str]]

_fork = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task: `result` is a word that the work returns, `reason` says why."""

    name: str
    result: str
    reason: str = ""
    duration_s: float = 0.0


def run_all(
    tasks: Iterable[tuple[str, Path]], work: Work, failed: str, jobs: int, timeout_s: float
) -> Iterator[Outcome]:
    """Yield outcomes of (name, path) tasks in the order in which they end.

    `failed` is the result of a task whose process raised, crashed or ran out of time.
    """
    waiting = list(tasks)[::-1]
    running: list[_Job] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, path = waiting.pop()
                running.append(_Job(name, path, work, failed, timeout_s))
            for job in _wait(running):
                running.remove(job)
                yield job.outcome()
    finally:
        for job in running:
            job.kill()


class _Job:
    """Task for one file, in a process of its own."""

    def __init__(self, name: str, path: Path, work: Work, failed: str, timeout_s: float) -> None:
        self._name, self._failed = name, failed
        self._started = time.monotonic()
        self.deadline = self._started + timeout_s
        self.receiver, sender = _fork.Pipe(duplex=False)
        self._process: BaseProcess = _fork.Process(
            target=_run, args=(work, path, failed, sender), daemon=True
        )
        self._process.start()
        sender.close()

    def outcome(self) -> Outcome:
        """End the process and return its outcome; call it when `receiver` is ready or the deadline has
        passed.
        """
        try:
            result, reason = self.receiver.recv() if self.receiver.poll() else (self._failed, "timed out")
        except EOFError:
            self._process.join()
            result, reason = self._failed, _death(self._process.exitcode)
        self.kill()
        return Outcome(self._name, result, reason, time.monotonic() - self._started)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.receiver.close()


def _wait(running: list[_Job]) -> list[_Job]:
    """Wait for at least one job that is done or late; return all such jobs."""
    timeout_s = max(0.0, min(job.deadline for job in running) - time.monotonic())
    ready = multiprocessing.connection.wait([job.receiver for job in running], timeout_s)
    now = time.monotonic()
    return [job for job in running if job.receiver in ready or job.deadline <= now]


def _run(work: Work, path: Path, failed: str, sender: Connection) -> None:
    try:
        result = work(path)
    except Exception as error:  # a bug of ours; the other files continue
        result = failed, f"{type(error).__name__}: {error}"
    sender.send(result)
    sender.close()


def _death(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"crashed: {signal.Signals(-exit_code).name}"
    return f"ended without a result (exit code {exit_code})"
