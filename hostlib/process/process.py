"""Run and control of a host process.

    process = its configuration, a JSON file named on the command line
    stdout  < {"event": "ready"}                 once, when it can serve
    stdin   > start [MONOTONIC_S]                the run's time 0: now, or then (CLOCK_MONOTONIC, which all
                                                 processes of a machine share)
    stdout  < {"event": "progress", "t_s": ...}  every second
    stdout  < {"event": "finished"}              when all its work is done (a storage node never is)
    stdin   > report
    stdout  < {"event": "report", ...}           all counters as they are now
    stdin   > stop                               or SIGTERM, SIGINT, or the end of stdin

Then it writes its result file (as it did when it finished) and exits with 0. Errors in the configuration are
one line on stderr and exit code 2. The end of stdin means that whoever started the process is gone: it ends,
so that nothing is left behind. With stdin from /dev/null only signals end it. Whoever starts it reads its
stdout as it comes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hostlib.process.config import ProcessConfig, load_config
from hostlib.process.observe import SelfObserver
from hostlib.protocol.errors import HostlibError
from weir import logs
from weir.standard_input import follow_commands

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRESS_PERIOD_S = 1.0
GC_THRESHOLDS = (10_000, 10, 100)
"""A storage node with a million blocks stops for up to 0.4 s whenever Python's collector walks them all. By
Python's own thresholds it does so again and again while blocks come."""

log = logging.getLogger(__name__)

Config = TypeVar("Config", bound=ProcessConfig)


class HostProcess(ABC):
    """Interface of a kind of host process: its work, progress and report."""

    @abstractmethod
    async def run(self, start_s: float) -> None:
        """Work from the start of the run (loop time); returns when there is nothing more to do."""

    @abstractmethod
    def progress(self) -> dict[str, Any]:
        """Return a small JSON object for the progress line."""

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Return all counters: what `report` is answered with. Its size does not grow with the run."""

    def result(self) -> dict[str, Any]:
        """Return the JSON object for the result file."""
        return self.report()

    @abstractmethod
    def close(self) -> None:
        """Release sockets and files."""


def main(kind: type[Config], open_host: Callable[[Config], HostProcess], arguments: list[str]) -> int:
    """Run the command line of a host process; `open_host` is called within the event loop. Return the exit
    code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m hostlib.storage.storage|worker|router|index CONFIG.json", file=sys.stderr)
        return 2
    logs.begin(Path(arguments[0]).stem)
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        config = load_config(kind, Path(arguments[0]))
        asyncio.run(_Controlled(open_host, config).run())
    except (HostlibError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


class _Controlled(Generic[Config]):
    """One run of a host process, from ready to stop."""

    def __init__(self, open_host: Callable[[Config], HostProcess], config: Config) -> None:
        self._open_host = open_host
        self._config = config

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._start: asyncio.Future[float] = self._loop.create_future()
        self._stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        self._host = self._open_host(self._config)
        self._observer = SelfObserver(self._config.observe_s)
        try:
            follow_commands(self._on_command, lambda: self._call(self._stop.set))
            self._emit("ready")
            log.info("is ready")
            await self._until_stop()
        finally:
            self._observer.stop()
            self._host.close()

    async def _until_stop(self) -> None:
        stop = asyncio.create_task(self._stop.wait())
        events: list[asyncio.Future[Any]] = [self._start, stop]
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        if self._stop.is_set():  # it served all the time, though nobody told it to begin
            self._write_result()
            return
        start_s = self._start.result()
        work = asyncio.create_task(self._work(start_s))
        progress = asyncio.create_task(self._report_progress(start_s))
        await asyncio.wait([work, progress, stop], return_when=asyncio.FIRST_COMPLETED)
        for task in (work, progress, stop):
            task.cancel()
        await asyncio.wait([work, progress])
        self._write_result()
        for task in (work, progress):
            if not task.cancelled():
                task.result()

    async def _work(self, start_s: float) -> None:
        await asyncio.sleep(start_s - self._loop.time())
        self._observer.start()
        log.info("begins")
        await self._host.run(start_s)
        log.info("has finished its work")
        self._write_result()
        self._emit("finished")
        await self._stop.wait()

    async def _report_progress(self, start_s: float) -> None:
        for second in count(1):
            await asyncio.sleep(start_s + second * PROGRESS_PERIOD_S - self._loop.time())
            self._emit("progress", t_s=round(self._loop.time() - start_s, 3), **self._host.progress())

    def _write_result(self) -> None:
        path = Path(self._config.result)
        part = path.with_name(path.name + ".part")
        result = {**self._host.result(), "process": self._observer.report()}
        part.write_text(json.dumps(result) + "\n", encoding="utf-8")
        part.replace(path)

    def _report(self) -> None:
        self._emit("report", **self._host.report(), process=self._observer.report())

    def _emit(self, event: str, **details: Any) -> None:
        try:
            print(json.dumps({"event": event, **details}), flush=True)
        except BrokenPipeError:  # whoever started this process is gone
            self._stop.set()

    def _on_command(self, line: str) -> bool:
        """Carry out a line of stdin, in its thread; False for the last one."""
        command, *rest = line.split() or [""]
        if command == "start":
            self._call(self._set_start, float(rest[0]) if rest else None)
        elif command == "report":
            self._call(self._report)
        return command != "stop"

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def _set_start(self, at_s: float | None) -> None:
        if not self._start.done():
            self._start.set_result(self._loop.time() if at_s is None else at_s)
