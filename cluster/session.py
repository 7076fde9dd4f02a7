"""The run's side of a connection to the agent of a server."""

from __future__ import annotations

import contextlib
import itertools
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, Final

from cluster.clocks import Offset, estimate
from cluster.errors import ServerError, ServerLostError
from cluster.messages import Message, MessageError, Outgoing, incoming, to_bytes
from cluster.remote_process import LOST, RemoteProcess

ANSWER_TIMEOUT_S: Final = 120.0
"""Seconds to wait for an answer: a busy server takes long, and ssh notices a lost one."""
CLOSE_TIMEOUT_S: Final = 30.0
ALIVE_S: Final = 3.0
CLOCK_QUESTIONS: Final = 20
MAX_WORDS_BYTES: Final = 1 << 16
_GUARD: Final = ("setpriv", "--pdeathsig", "TERM", "--")


class Session:
    """Connection that asks an agent and receives its processes' output. Use as a context manager."""

    def __init__(self, server: str, command: Sequence[str], words: IO[bytes]) -> None:
        """Start nothing yet. `command` starts the agent, whose stderr goes to the readable file `words`."""
        self.server, self._command, self._words = server, command, words
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Message]] = {}
        self._processes: dict[int, RemoteProcess] = {}
        self._lock = threading.Lock()
        self.lost: ServerLostError | None = None
        self._closing = threading.Event()

    def __enter__(self) -> Session:
        self._process = subprocess.Popen(
            [*_GUARD, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._outgoing = Outgoing(self._process.stdin)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._say_alive, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the agent and wait until it has removed what it made."""
        self._closing.set()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def ask(self, do: str, /, *, answer_within_s: float = ANSWER_TIMEOUT_S, **given: Any) -> Any:
        """Return the agent's answer; raises ServerError if it refuses, ServerLostError if it is gone."""
        number = next(self._numbers)
        answers: queue.SimpleQueue[Message] = queue.SimpleQueue()
        with self._lock:
            if self.lost is not None:
                raise self.lost
            self._answers[number] = answers
        try:
            self._send({"do": do, "number": number, **given})
            answer = answers.get(timeout=answer_within_s)
        except queue.Empty:
            raise ServerError(
                f"server {self.server} did not answer '{do}' within {answer_within_s:g} s: is it overloaded?"
            ) from None
        finally:
            with self._lock:
                self._answers.pop(number, None)
        if "refused" in answer:
            raise ServerError(f"server {self.server}: {answer['refused']}")
        if self.lost is not None and "result" not in answer:
            raise self.lost
        return answer["result"]

    def tell(self, do: str, **given: Any) -> None:
        """Send a request that has no answer. A lost server raises nothing here."""
        self._send({"do": do, **given})

    def start(
        self, host: str | None, command: Sequence[str], stdin: Any, stdout: Any, stderr: Any
    ) -> RemoteProcess:
        """Start a process in a host or switch of this server, or in none."""
        process = RemoteProcess(next(self._numbers), self.server, self, stdin, stdout, stderr)
        with self._lock:
            self._processes[process.number] = process
        given: dict[str, Any] = {which: process.wants(which) for which in ("out", "err")}
        given |= {"stdin": process.stdin is not None, "host": host, "command": list(command)}
        try:
            process.pid = int(self.ask("start", process=process.number, **given))
        except ServerError:
            with self._lock:
                self._processes.pop(process.number, None)
            process.ended(LOST)
            raise
        return process

    def clock(self, which: str) -> Offset:
        """Return the offset of a clock, "monotonic" or "wall", from ours."""
        ours = time.monotonic if which == "monotonic" else time.time
        return estimate(lambda: float(self.ask("clock")[which]), ours, CLOCK_QUESTIONS)

    def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._outgoing.send(message)

    def _say_alive(self) -> None:
        while not self._closing.wait(ALIVE_S):
            self.tell("alive")

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for message in incoming(self._process.stdout):
                self._take(message)
            reason = f"exit code {self._process.wait()}{self._last_words()}"
        except (MessageError, KeyError, TypeError, ValueError) as error:
            reason = f"it sent what is no message: {error}"
            self._process.kill()
        self._end(ServerLostError(self.server, reason))

    def _take(self, message: Message) -> None:
        if "process" in message:
            process = self._processes.get(message["process"])
            if process is None:
                return
            if "code" in message:
                with self._lock:
                    del self._processes[process.number]
                process.ended(int(message["code"]))
            for which in ("out", "err"):
                if which in message:
                    process.heard(which, to_bytes(message[which]))
            return
        with self._lock:
            answers = self._answers.get(message["number"])
        if answers is not None:
            answers.put(message)

    def _end(self, lost: ServerLostError) -> None:
        with self._lock:
            self.lost = lost
            waiting, processes = list(self._answers.values()), list(self._processes.values())
        for answers in waiting:
            answers.put({})
        for process in processes:
            process.ended(LOST, lost)

    def _last_words(self) -> str:
        try:
            self._words.seek(0)
            reason = " ".join(self._words.read(MAX_WORDS_BYTES).decode(errors="replace").split())
        except OSError:
            reason = ""
        return f": {reason[-300:]}" if reason else ""
