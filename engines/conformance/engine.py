"""Engines as the suite has them: processes that are asked in JSON lines, each answer within a time limit."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engines.conformance.comparison import Reply
from engines.conformance.engine_process import ENVIRONMENT, MESSAGE_BYTES, READY
from engines.conformance.outcome import Failed, SuiteError

IMPORT_LIMIT_S = 900.0
"""17 s on a quiet machine."""
START_LIMIT_S = 300.0
ANSWER_LIMIT_S = 120.0
COMMAND = (sys.executable, "-m", "engines.conformance.engine_process")
TAIL_CHARACTERS = 600
"""Characters of an engine's log in a message."""


class StartError(Exception):
    """An engine that did not start; the message is its own."""


class Answers:
    """Replies to requests that an engine served at once."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.replies: list[Reply] = answer["replies"]
        self.hit_tokens: int = answer["hit_tokens"]
        """Prompt tokens that vLLM counted as hits of its connector."""
        self.preemptions: int = answer["preemptions"]


class Engine:
    """One engine's process, forked or started by itself."""

    def __init__(
        self,
        folder: Path,
        name: str,
        config: dict[str, Any],
        forks: Forks | None,
        environment: dict[str, str],
    ) -> None:
        """Begin to start it. `forks` None: as a process of its own, with `environment` from the beginning."""
        self.log = folder / f"{name}.log"
        self.log_mark = 0
        """Where its log stood when the case began."""
        path = folder / f"{name}.json"
        path.write_text(json.dumps({**config, "log": str(self.log), "environment": environment}, indent=1))
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._pid = (
                forks.fork(path, theirs) if forks is not None else self._start(path, theirs, environment)
            )
        self._lines = self._connection.makefile("rw", encoding="utf-8")

    def wait_started(self) -> None:
        """Wait until it can be asked; raises StartError with what it says if it can't."""
        try:
            self._hear(START_LIMIT_S)
        except Failed as failure:
            self.kill()
            raise StartError(str(failure)) from None

    def serve(
        self,
        requests: Sequence[dict[str, Any]],
        output_tokens: int = 8,
        limit_s: float = ANSWER_LIMIT_S,
        **how: Any,
    ) -> Answers:
        """Answer all requests at once; raises Failed if the engine ends or takes longer than the limit."""
        return Answers(
            self.ask("serve", limit_s, requests=list(requests), output_tokens=output_tokens, **how)
        )

    def recompute(self, requests: Sequence[dict[str, Any]], output_tokens: int = 8) -> list[Reply]:
        """Answer each request by itself without reading any cache: what is right."""
        return [self.serve([request], output_tokens, recompute=True).replies[0] for request in requests]

    def forget(self) -> None:
        """Empty the engine's own prefix cache."""
        self.ask("forget")

    def ask(self, what: str, limit_s: float = ANSWER_LIMIT_S, **how: Any) -> Any:
        """Call a method of the process's engine; raises Failed with what went wrong."""
        try:
            self._lines.write(json.dumps({"do": what, **how}) + "\n")
            self._lines.flush()
        except OSError:
            raise Failed(f"the engine has ended: {self.log_tail()}") from None
        return self._hear(limit_s)

    def log_text(self) -> str:
        """Return what it and its libraries logged so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_tail(self) -> str:
        """Return the last lines of its log."""
        return " | ".join(self.log_text()[-TAIL_CHARACTERS:].strip().splitlines()[-4:])

    @property
    def alive(self) -> bool:
        """Return whether it still answers: nothing has ended or closed it."""
        return self._pid != 0

    def close(self) -> None:
        """End the engine by itself, so that its connector may finish; kill it if it does not end."""
        if not self.alive:
            return
        with suppress(OSError):
            self._lines.write('{"do": "stop"}\n')
            self._lines.flush()
            self._connection.settimeout(15.0)
            with suppress(TimeoutError):
                self._lines.readline()
        self.kill()

    def kill(self) -> None:
        """End it at once, with the processes that vLLM started."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            self._pid = 0
        if hasattr(self, "_lines"):
            with suppress(OSError):
                self._lines.close()
            self._connection.close()

    def _hear(self, limit_s: float) -> Any:
        self._connection.settimeout(limit_s)
        try:
            line = self._lines.readline()
        except TimeoutError:
            self.kill()
            raise Failed(f"no answer in {limit_s:g} s") from None
        except OSError as error:
            line = ""
            self.log.open("a").write(f"{error}\n")
        if not line:
            tail = self.log_tail()
            self.kill()
            raise Failed(f"the engine ended: {tail}")
        answer = json.loads(line)
        if "error" in answer:
            self.kill()
            raise Failed(answer["error"])
        return answer["result"]

    def _start(self, path: Path, theirs: socket.socket, environment: dict[str, str]) -> int:
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*COMMAND, str(path), str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                pass_fds=(theirs.fileno(),), env={**_inherited(), **environment},
            )  # fmt: skip
        return process.pid


class Forks:
    """The process that has vLLM imported and forks engines."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._log = folder / "forks.log"
        self._asks, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asks.settimeout(IMPORT_LIMIT_S)
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*COMMAND, "--fork", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),), env={**_inherited(), **environment},
            )  # fmt: skip

    def fork(self, path: Path, connection: socket.socket) -> int:
        """Make an engine of a configuration's file, with its end of a socket.

        Returns its process id, also of its process group.
        """
        socket.send_fds(self._asks, [str(path).encode()], [connection.fileno()])
        return int(self._asks.recv(MESSAGE_BYTES))

    def wait_ready(self) -> None:
        """Wait until vLLM is imported; raises SuiteError if it can't be."""
        with suppress(OSError):
            if self._asks.recv(MESSAGE_BYTES) == READY:
                return
        tail = self._log.read_text(errors="replace")[-TAIL_CHARACTERS:]
        raise SuiteError(f"vLLM could not be imported, see {self._log}: {tail}")

    def close(self) -> None:
        """End the process; engines go on."""
        self._process.kill()
        self._process.wait()
        self._asks.close()


def _inherited() -> dict[str, str]:
    """Return the environment of an engine, except for what a case sets itself."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return {**inherited, **ENVIRONMENT}
