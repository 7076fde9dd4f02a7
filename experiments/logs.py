"""Logs of all processes of a network, collected in one file in the order of their times.

Each process writes to a file of its own below the network's directory, NAME.log. This module reads the files
as they grow. `weir.logs` has the format.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final, TypeVar

from cluster.errors import ServerLostError
from commands.command import Screen
from commands.errors import CrashError
from commands.value_size import build_core
from commands.verbosity import VERBOSE
from hostlib.protocol.wire import MTU_BYTES
from topologies.engines import Engine
from topologies.fabric import Fabric
from topologies.network import Network
from topologies.running import RunningNetwork
from weir.logs import LEVEL_VARIABLE, Record, read_line

PERIOD_S: Final = 0.5
MAX_READ_BYTES: Final = 1 << 20
"""Most bytes that are read from a log at a time."""
MAX_RECORDS: Final = 100_000
"""Most records that are written, of all processes together; further records are only counted."""
NAME: Final = "log.jsonl"

AnyNetwork = TypeVar("AnyNetwork", bound=RunningNetwork)
OnRecord = Callable[[Record], None]
Open = Callable[[Fabric, Engine], AbstractContextManager[Network]]
"""Function that opens a network: Network itself, or one that also collects the logs."""


class Logs:
    """Collector that follows the logs below a directory and writes their records to a file, see `follow`."""

    def __init__(self, path: Path, on_record: OnRecord = lambda record: None, append: bool = False) -> None:
        self.path, self._on_record = path, on_record
        self._mode = "a" if append else "w"
        self.counts: Counter[str] = Counter()
        """Number of records by level."""
        self._read_bytes: dict[Path, int] = {}

    @contextmanager
    def follow(self, directory: Path) -> Iterator[None]:
        """Collect the logs below a directory during the `with` block, and what is left when it ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        done = threading.Event()
        with self.path.open(self._mode, encoding="utf-8") as into:

            def work() -> None:
                while not done.wait(PERIOD_S):
                    self._gather(directory, into)

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            try:
                yield
            finally:
                done.set()
                thread.join()
                while self._gather(directory, into):
                    pass

    def _gather(self, directory: Path, into: IO[str]) -> int:
        """Write the records that are new; returns their number."""
        records = [record for path in _logs_below(directory) for record in self._new(path)]
        for record in sorted(records, key=lambda record: record.time):
            self.counts[record.level] += 1
            if self.counts.total() <= MAX_RECORDS:
                into.write(record.to_json() + "\n")
                self._on_record(record)
        into.flush()
        return len(records)

    def _new(self, path: Path) -> list[Record]:
        """Return the records in a log's new whole lines.

        A file that is gone has no new records. A file that has become shorter is read from its start.
        """
        at = self._read_bytes.get(path, 0)
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < at:
                    at = 0
                file.seek(at)
                part = file.read(MAX_READ_BYTES)
        except OSError:
            return []
        whole = part if len(part) == MAX_READ_BYTES else part[: part.rfind(b"\n") + 1]
        self._read_bytes[path] = at + len(whole)
        now_s = time.time()
        lines = whole.decode(errors="replace").splitlines()
        return [read_line(line, path.stem, now_s) for line in lines if line.strip()]


def _logs_below(directory: Path) -> list[Path]:
    """Return the logs in a directory and below it. Files that go away meanwhile are left out."""
    folders = os.walk(directory)
    return sorted(
        Path(folder, name) for folder, _, names in folders for name in names if name.endswith(".log")
    )


@contextmanager
def open_network(
    screen: Screen,
    fabric: Fabric,
    engine: Engine,
    results: Path,
    about: Mapping[str, object],
    secure: bool = False,
    queue_packets: int | None = None,
    append: bool = False,
) -> Iterator[Network]:
    """Open a network whose processes' logs are kept in the folder `results`, and shown with -v.

    If a process crashes, summary.json in that folder has `about`, the process, how it ended and its last
    output. With `append`, the logs of networks that the command opened before stay. `queue_packets`: see
    Network.
    """
    build_core()
    network = Network(fabric, engine, secure=secure, queue_packets=queue_packets, mtu_bytes=MTU_BYTES)
    with keep_logs(screen, network, results, about, append) as opened:
        yield opened


@contextmanager
def keep_logs(
    screen: Screen,
    network: AbstractContextManager[AnyNetwork],
    results: Path,
    about: Mapping[str, object],
    append: bool = False,
) -> Iterator[AnyNetwork]:
    """Open a network, on one machine or several, and keep its logs as `open_network` does."""
    level = logging.DEBUG if screen.level > VERBOSE else logging.INFO

    def show(record: Record) -> None:
        if screen.level >= VERBOSE and record.severity >= level:
            screen.console.print(record.to_text(), markup=False, soft_wrap=True)

    logs = Logs(results / NAME, show, append)
    opened_s = time.time()
    try:
        with (
            _log_from(level),
            network as opened,
            logs.follow(opened.directory),
        ):
            yield opened
    except (CrashError, ServerLostError) as error:
        _write_crash(results / "summary.json", opened_s, about, error)
        raise
    finally:
        serious = sum(count for name, count in logs.counts.items() if name not in ("debug", "info"))
        if serious and screen.level < VERBOSE:
            screen.say(f"{serious} warnings and errors of processes are in {logs.path} (-v shows them)")


class OpenNetworks:
    """Opener of one network after the other, which keeps the logs of all in the folder `results`."""

    def __init__(self, screen: Screen, results: Path, about: Mapping[str, object]) -> None:
        self._screen, self._results, self._about = screen, results, about
        self._opened = 0

    def __call__(self, fabric: Fabric, engine: Engine) -> AbstractContextManager[Network]:
        """Open the next network as `open_network` does."""
        self._opened += 1
        append = self._opened > 1
        return open_network(self._screen, fabric, engine, self._results, self._about, append=append)


@contextmanager
def _log_from(level: int) -> Iterator[None]:
    """Let processes that are started during the `with` block log from this level on."""
    before = os.environ.get(LEVEL_VARIABLE)
    os.environ[LEVEL_VARIABLE] = logging.getLevelName(level).lower()
    try:
        yield
    finally:
        del os.environ[LEVEL_VARIABLE]
        if before is not None:
            os.environ[LEVEL_VARIABLE] = before


def _write_crash(
    path: Path, opened_s: float, about: Mapping[str, object], error: CrashError | ServerLostError
) -> None:
    """Add the crash to the summary of this run, if it was written; replace the summary of an earlier run."""
    known: Mapping[str, object] = about
    if path.exists() and path.stat().st_mtime >= opened_s:
        known = json.loads(path.read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**known, "crashed": error.summary()}, indent=1) + "\n", encoding="utf-8")
