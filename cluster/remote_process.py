"""A process on a server, with the interface of `subprocess.Popen`."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import threading
from typing import IO, Any, Protocol

from cluster.errors import ServerLostError
from cluster.messages import to_text

LOST = -int(signal.SIGKILL)
"""Exit code of a process whose server was lost."""


class MessageSender(Protocol):
    """Sender of requests to the agent of a server."""

    def tell(self, do: str, **given: Any) -> None:
        """Send a request that has no answer."""


class RemoteProcess:
    """A program that the agent of a server started."""

    def __init__(
        self, number: int, server: str, sender: MessageSender, stdin: Any, stdout: Any, stderr: Any
    ) -> None:
        """Connect the streams, which are given as to subprocess.Popen; files get what the process writes."""
        self.number, self.server = number, server
        self.pid = 0
        """Process id on its server."""
        self.returncode: int | None = None
        self._sender = sender
        self._ended = threading.Event()
        self._lost: ServerLostError | None = None
        self._sinks: dict[str, int] = {}
        self.stdin: IO[bytes] | None = None
        if stdin == subprocess.PIPE:
            self.stdin = io.BufferedWriter(_Stdin(number, sender))
        self.stdout = self._stream("out", stdout)
        self.stderr = self._stream("err", stderr)

    def wants(self, which: str) -> bool:
        """Return whether its stream "out" or "err" is read."""
        return which in self._sinks

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; returns the exit code.

        Raises subprocess.TimeoutExpired, or ServerLostError if its server was lost.
        """
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid} of {self.server}", timeout or 0.0)
        if self._lost is not None:
            raise self._lost
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        """Send a signal; does nothing if it has ended."""
        if self.returncode is None:
            self._sender.tell("signal", process=self.number, signal=int(sig))

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def heard(self, which: str, data: bytes) -> None:
        """Take output that the process wrote to its stream "out" or "err"."""
        sink = self._sinks.get(which)
        while sink is not None and data:
            try:
                data = data[os.write(sink, data) :]
            except OSError:  # nobody reads any more
                return

    def ended(self, code: int, lost: ServerLostError | None = None) -> None:
        """Take its exit code, negative for a signal. `lost` is the reason if the code is unknown."""
        if self.returncode is not None:
            return
        for sink in self._sinks.values():
            with contextlib.suppress(OSError):
                os.close(sink)
        self._sinks.clear()
        self._lost, self.returncode = lost, code
        self._ended.set()

    def _stream(self, which: str, given: Any) -> IO[bytes] | None:
        """Return our end of a pipe if `given` is PIPE, else None; remember where output goes."""
        if given == subprocess.PIPE:
            read, self._sinks[which] = os.pipe()
            return os.fdopen(read, "rb")
        if given is not None and given != subprocess.DEVNULL:
            self._sinks[which] = os.dup(given if isinstance(given, int) else given.fileno())
        return None


class _Stdin(io.RawIOBase):
    """Stream whose bytes are sent to the process's stdin."""

    def __init__(self, number: int, sender: MessageSender) -> None:
        self._number, self._sender = number, sender

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Send bytes to the process; returns their number."""
        sent = bytes(data)
        self._sender.tell("write", process=self._number, text=to_text(sent))
        return len(sent)

    def close(self) -> None:
        """Close the process's stdin."""
        if not self.closed:
            self._sender.tell("close_stdin", process=self._number)
        super().close()
