"""Client of the fork server: starts programs and learns how they ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

from topologies.errors import EngineError

START_TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 4096
_SERVER = "topologies.forkserver.server"


class ForkedProcess:
    """Program that the fork server started, with those members of `subprocess.Popen` that networks need."""

    def __init__(self, pid: int, streams: Sequence[IO[bytes] | None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = streams
        self._pidfd = os.pidfd_open(pid)
        self._ended = threading.Event()

    def poll(self) -> int | None:
        """Return the exit code, or None while the program runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program has ended and return its exit code; raises subprocess.TimeoutExpired."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; do nothing if the program has ended."""
        with contextlib.suppress(ProcessLookupError, OSError):
            if self.returncode is None:
                signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def ended(self, code: int) -> None:
        """Set the exit code that the server reported; it is negative for a signal."""
        if self.returncode is None:
            self.returncode = code
            os.close(self._pidfd)
            self._ended.set()


class ForkServer:
    """Server that has imported `modules` and can run any of them. Use as a context manager."""

    def __init__(
        self, modules: Iterable[str], popen: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    ) -> None:
        """Prepare a server; `popen` starts its process."""
        self._modules = tuple(modules)
        self._popen = popen
        self._lock = threading.Lock()  # one start at a time: answers come in order
        self._started: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._processes: dict[int, ForkedProcess] = {}
        self._early: dict[int, int] = {}

    def __enter__(self) -> ForkServer:
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [
                sys.executable,
                "-m",
                "topologies.forkserver.server",
                str(theirs.fileno()),
                *self._modules,
            ]
            self.process = self._popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
        self._link.settimeout(START_TIMEOUT_S)
        try:
            ready = self._link.recv(MAX_ANSWER_BYTES)
        except TimeoutError:
            ready = b""
        if not ready:
            self._link.close()
            raise EngineError(f"the process that starts the others did not: {' '.join(command)}")
        self._link.settimeout(None)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._link.close()
        self.process.wait()

    def start(
        self, module: str, arguments: Sequence[str], namespace: str | None = None, *,
        stdin: Any = None, stdout: Any = None, stderr: Any = None,
    ) -> ForkedProcess:  # fmt: skip
        """Run a module as a program, in a network namespace (a path) if one is given.

        Streams are as in subprocess.Popen. Raises EngineError if the server has ended.
        """
        with contextlib.ExitStack() as theirs:
            pairs = [_stream(number, which, theirs) for number, which in enumerate((stdin, stdout, stderr))]
            request = {"module": module, "arguments": list(arguments), "namespace": namespace}
            with self._lock:
                try:
                    socket.send_fds(self._link, [json.dumps(request).encode()], [fd for fd, _ in pairs])
                    pid = self._started.get()
                except OSError:
                    pid = None
                if pid is None:
                    raise EngineError(f"{module} was not started: the process that starts the others is gone")
                process = self._processes[pid] = ForkedProcess(pid, [ours for _, ours in pairs])
                if pid in self._early:
                    process.ended(self._early.pop(pid))
        return process

    def _read(self) -> None:
        """Read the server's messages until it is gone; then mark its programs, which end with it, ended."""
        with contextlib.suppress(OSError):
            while text := self._link.recv(MAX_ANSWER_BYTES):
                answer = json.loads(text)
                if "pid" in answer:
                    self._started.put(answer["pid"])
                else:
                    self._note_ended(answer["ended"], answer["code"])
        self._started.put(None)
        for process in list(self._processes.values()):
            process.ended(-signal.SIGTERM)

    def _note_ended(self, pid: int, code: int) -> None:
        process = self._processes.pop(pid, None)
        if process is None:
            self._early[pid] = code
        else:
            process.ended(code)


def _stream(number: int, which: Any, theirs: contextlib.ExitStack) -> tuple[int, IO[bytes] | None]:
    """Return the descriptor for the child, and our end if it is a pipe."""
    if which == subprocess.PIPE:
        read, write = os.pipe()
        child, ours = (read, write) if number == 0 else (write, read)
        theirs.callback(os.close, child)
        return child, os.fdopen(ours, "wb" if number == 0 else "rb", buffering=-1 if number else 0)
    if which == subprocess.DEVNULL:
        descriptor = os.open(os.devnull, os.O_RDWR)
        theirs.callback(os.close, descriptor)
        return descriptor, None
    if which is None:
        return number, None
    return (which if isinstance(which, int) else which.fileno()), None
