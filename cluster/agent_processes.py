"""Processes that an agent has started: it forwards their output and reports when they end."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from typing import IO, Final

from cluster.messages import CHUNK_BYTES, Outgoing, to_bytes, to_text
from topologies.process import Process

POLL_S: Final = 0.1
"""Seconds between two looks at which processes have ended."""
_OUT, _ERR = "out", "err"


class AgentProcesses:
    """Processes by the numbers that the run gives them. `close` ends the thread that reads their output."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._processes: dict[int, Process] = {}
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread that reads the output."""
        self._done.set()
        self._thread.join()
        self._selector.close()

    def add(self, number: int, process: Process) -> None:
        """Read the output of a started process, and report when it ends."""
        with self._lock:  # else _listen could close its streams in between
            for which, stream in ((_OUT, process.stdout), (_ERR, process.stderr)):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    self._selector.register(stream, selectors.EVENT_READ, (number, which))
            self._processes[number] = process

    def pid(self, number: int) -> int:
        """Return the process id on this server; raises KeyError for a process that has ended."""
        with self._lock:
            return self._processes[number].pid

    def write(self, number: int, text: str) -> None:
        """Write to a process's stdin; does nothing if it has ended."""
        process = self._processes.get(number)
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(to_bytes(text))
                process.stdin.flush()

    def close_stdin(self, number: int) -> None:
        """Close a process's stdin; does nothing if it has ended."""
        process = self._processes.get(number)
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.close()

    def signal(self, number: int, which: int) -> None:
        """Send a process a signal; does nothing if it has ended."""
        process = self._processes.get(number)
        if process is not None:
            process.send_signal(which)

    def _listen(self) -> None:
        while not self._done.is_set():
            self._selector.select(POLL_S)  # waits even when empty; notices what is registered meanwhile
            with self._lock:
                ready = self._selector.select(0)
            for key, _ in ready:
                self._send_on(key)
            self._note_ended()

    def _send_on(self, key: selectors.SelectorKey) -> bool:
        """Forward what a stream has; returns whether there may be more."""
        number, which = key.data
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
        try:
            data = os.read(stream.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return False
        except (OSError, ValueError):  # its streams may have been closed by whoever ended it
            data = b""
        if not data:
            with self._lock:
                self._selector.unregister(stream)
            return False
        self._outgoing.send({"process": number, which: to_text(data)})
        return True

    def _note_ended(self) -> None:
        with self._lock:
            ended = [(number, one) for number, one in self._processes.items() if one.poll() is not None]
        for number, process in ended:
            self._drain(number)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            with self._lock:
                del self._processes[number]
            self._outgoing.send({"process": number, "code": process.poll()})

    def _drain(self, number: int) -> None:
        """Forward the last output of a process that has ended, without waiting for others that share its
        streams.
        """
        with self._lock:
            keys = [key for key in self._selector.get_map().values() if key.data[0] == number]
        for key in keys:
            while self._send_on(key):
                pass
            with self._lock, contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(key.fileobj)
