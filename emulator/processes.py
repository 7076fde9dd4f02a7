"""Child processes that write JSON lines, such as hosts (hostlib.process.process) and the controller."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from commands.errors import CrashError, ExperimentError
from topologies.process import Process
from topologies.running import RunningNetwork
from weir.logs import last_lines

READY_TIMEOUT_S = 60.0
ANSWER = "report"
"""Line that asks hosts and the controller for their counters, and event with which they answer."""
STOP_TIMEOUT_S = 30.0
"""Seconds within which a process has to stop; one that gets no CPU does not hang."""


class ProcessError(ExperimentError):
    """A process of the run was silent, or could not be used."""


Events = queue.SimpleQueue["tuple[LineProcess, dict[str, Any]]"]
"""Queue of processes' events, in order; several processes may share one."""


class LineProcess:
    """Child process whose events are read in the background and put into `events`."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        popen: Callable[..., Process],
        events: Events | None = None,
    ) -> None:
        self.name, self._log = name, log
        self.events: Events = queue.SimpleQueue() if events is None else events
        self.last_events: dict[str, dict[str, Any]] = {}
        """Last event of each kind."""
        self.stopping = False
        self._changed = threading.Condition()
        with log.open("wb") as stderr:
            self.process = popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def progress(self) -> dict[str, Any]:
        """Return its last report of progress."""
        return self.last_events.get("progress", {})

    def send(self, line: str) -> None:
        """Write a command to its stdin; does nothing if it has ended."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def answer(self, before: object, deadline_s: float) -> dict[str, Any] | None:
        """Return the first answer other than `before`; None if there is none by the deadline (monotonic)."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.last_events.get(ANSWER) is not before, max(0.0, deadline_s - time.monotonic())
            )
            answer = self.last_events.get(ANSWER)
        return None if answer is before else answer

    def stop(self) -> None:
        """Ask it to end and wait until it has.

        Raises ProcessError if it does not, CrashError if it failed.
        """
        self.stopping = True
        self.send("stop")
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"{self.name} did not stop within {STOP_TIMEOUT_S:g} s") from None
        self._reader.join()
        if code != 0:
            raise self.failure()

    def failure(self) -> CrashError:
        """Return the error to raise when it ended, with its last lines."""
        return CrashError(self.name, self.process.wait(), last_lines(self._log, self.name))

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                event = json.loads(line)
                with self._changed:
                    self.last_events[event["event"]] = event
                    self._changed.notify_all()
                if event["event"] != ANSWER:  # nothing waits for these in the queue
                    self.events.put((self, event))
        self.events.put((self, {"event": "ended"}))


def wait_for(
    event: str,
    processes: Iterable[LineProcess],
    events: Events,
    timeout_s: float,
    on_event: Callable[[], None] = lambda: None,
) -> None:
    """Wait until every process has sent `event`; call `on_event` after each event of any process.

    Raises CrashError if one ends first, ProcessError if nothing is heard for `timeout_s`.
    """
    waiting = {process.name for process in processes}
    while waiting:
        try:
            process, received = events.get(timeout=timeout_s)
        except queue.Empty:
            names = ", ".join(sorted(waiting))
            raise ProcessError(
                f"nothing heard for {timeout_s:g} s; waiting for '{event}' of {names}"
            ) from None
        if received["event"] == "ended":
            if process.stopping:
                continue
            raise process.failure()
        if received["event"] == event:
            waiting.discard(process.name)
        on_event()


def ask_all(processes: Iterable[LineProcess], timeout_s: float) -> dict[str, dict[str, Any]]:
    """Return the current counters of processes, by name; silent processes are left out."""
    last_answers = [(process, process.last_events.get(ANSWER)) for process in processes]
    for process, _ in last_answers:
        process.send(ANSWER)
    deadline_s = time.monotonic() + timeout_s
    answers = {process.name: process.answer(before, deadline_s) for process, before in last_answers}
    return {name: answer for name, answer in answers.items() if answer is not None}


def ask(process: LineProcess, timeout_s: float) -> dict[str, Any]:
    """Return the current counters of a process; raises ProcessError if it does not answer in time."""
    answers = ask_all([process], timeout_s)
    if process.name not in answers:
        raise ProcessError(f"{process.name} did not report within {timeout_s:g} s")
    return answers[process.name]


def check_switches(network: RunningNetwork) -> None:
    """Raise CrashError if a switch has ended."""
    for switch, process in list(network.switch_processes.items()):
        if process.poll() is not None:
            raise CrashError(switch, process.wait(), last_lines(network.switch_log(switch), switch))


def monotonic_start(delay_s: float) -> float:
    """Return a common time 0 for all processes, `delay_s` from now (CLOCK_MONOTONIC)."""
    return time.monotonic() + delay_s
