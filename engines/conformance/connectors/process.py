"""Processes of stores: started with a log, waited for, stopped, let hang."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

START_LIMIT_S = 300.0


class StoreError(Exception):
    """A store that did not start; the message has the end of its log."""


class StoreProcess:
    """One process, in a session of its own."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True,
                start_new_session=True, env={**os.environ, **(environment or {})},
            )  # fmt: skip

    def ask(self, line: str) -> str:
        """Write a line to its stdin and return the next one of its stdout."""
        stdin, stdout = self._pipes()
        stdin.write(line + "\n")
        stdin.flush()
        return stdout.readline().strip()

    def wait_line(self, expected: str) -> None:
        """Wait for a line of its stdout that begins so."""
        _, stdout = self._pipes()
        for line in stdout:
            if line.startswith(expected):
                return
        self.kill()
        raise StoreError(f"the store did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def wait_port(self, port: int) -> None:
        """Wait until it listens at a TCP port of 127.0.0.1."""
        try:
            wait_listening(port, lambda: self._process.poll() is None)
        except StoreError as error:
            self.kill()
            raise StoreError(f"{error}:\n{self.log.read_text(errors='replace')[-2000:]}") from None

    def silence(self) -> None:
        """Let it hang."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def wait_listening(port: int, going_on: Callable[[], bool] = lambda: True) -> None:
    """Wait until something listens at a TCP port of 127.0.0.1, as long as `going_on`; raises StoreError."""
    deadline_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline_s and going_on():
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise StoreError(f"nothing listens at port {port}")


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
