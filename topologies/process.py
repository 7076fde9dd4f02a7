"""Processes of a network, with the methods of `subprocess.Popen`, whoever started them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable
from typing import IO, Protocol

STOP_TIMEOUT_S = 3.0


class Process(Protocol):
    """Program that was started by us, by the fork server, or on another server."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    returncode: int | None

    @property
    def pid(self) -> int:
        """Return the process ID on the machine that it runs on."""

    def poll(self) -> int | None:
        """Return the exit code, or None while the program runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program has ended and return its exit code; raises subprocess.TimeoutExpired."""

    def send_signal(self, sig: int, /) -> None:
        """Send a signal; do nothing if the program has ended."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


def end_processes(processes: Iterable[Process]) -> None:
    """End all the processes at the same time, as `end_process` does."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        end_process(process)


def end_process(process: Process) -> None:
    """Send SIGTERM, and SIGKILL if the process does not end within STOP_TIMEOUT_S; close its streams."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        _close(stream)


def _close(stream: IO[bytes] | None) -> None:
    with contextlib.suppress(OSError):
        if stream is not None:
            stream.close()
