"""One format for the logs of all processes: JSON lines in files, text on a terminal.

    {"time": 1763796000.123, "level": "warning", "process": "store1", "logger": "hostlib.storage.storage",
     "message": ...}

`time` is in seconds since 1970. `exception` is present if one was logged. Lines that are not JSON, such as an
interpreter's last words, become records, too (`read_line`). Needs the standard library only.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

LEVEL_VARIABLE: Final = "WEIR_LOG"
"""Environment variable with the lowest level that is logged: debug, info, warning (the default) or error."""
LEVELS: Final = ("debug", "info", "warning", "error", "critical")
MAX_MESSAGE_CHARACTERS: Final = 4000
MAX_TAIL_BYTES: Final = 1 << 16
LAST_LINES: Final = 12
_DUMP: Final = "Fatal Python error"
_CRASHES: Final = ("Traceback (most recent call last)", _DUMP)


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log."""

    time: float
    level: str
    process: str
    logger: str
    message: str
    exception: str = ""

    def to_json(self) -> str:
        """Return the record as a line of JSON, without empty fields."""
        return json.dumps({name: value for name, value in asdict(self).items() if value != ""})

    def to_text(self) -> str:
        """Return the record as text for a person; an exception is indented on lines of its own."""
        clock = time.strftime("%H:%M:%S", time.localtime(self.time)) + f".{int(self.time % 1 * 1000):03}"
        head = f"{clock} {self.level:<8} {self.process}: {self.message}"
        return "\n".join([head, *(f"    {line}" for line in self.exception.splitlines())])

    @property
    def severity(self) -> int:
        """Return logging's number for the level."""
        return int(getattr(logging, self.level.upper()))


class _Formatter(logging.Formatter):
    def __init__(self, process: str, as_json: bool) -> None:
        super().__init__()
        self._process, self._as_json = process, as_json

    def format(self, record: logging.LogRecord) -> str:
        exception = self.formatException(record.exc_info) if record.exc_info else ""
        level, message = record.levelname.lower(), record.getMessage()[:MAX_MESSAGE_CHARACTERS]
        entry = Record(round(record.created, 3), level, self._process, record.name, message, exception)
        return entry.to_json() if self._as_json else entry.to_text()


def begin(process: str) -> None:
    """Make this process log to stderr: text on a terminal, else JSON lines. Crashes are logged, too."""
    level = os.environ.get(LEVEL_VARIABLE, "warning")
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(process, as_json=not sys.stderr.isatty()))
    logging.basicConfig(
        handlers=[handler], level=(level if level in LEVELS else "warning").upper(), force=True
    )
    sys.excepthook = _log_crash
    threading.excepthook = _log_thread_crash
    faulthandler.enable()


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger("crash").critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))


def _log_thread_crash(crash: threading.ExceptHookArgs) -> None:
    if crash.exc_value is not None:
        _log_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)


def read_line(line: str, process: str, now_s: float) -> Record:
    """Parse a line of a process's log.

    A line that is not a record in JSON becomes the message of a record with the time `now_s`.
    """
    try:
        given: dict[str, Any] = json.loads(line)
        level, logger = str(given["level"]), str(given.get("logger", ""))
        if level in LEVELS:
            name, exception = str(given.get("process") or process), str(given.get("exception", ""))
            return Record(float(given["time"]), level, name, logger, str(given["message"]), exception)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    text = line.rstrip()[:MAX_MESSAGE_CHARACTERS]
    return Record(now_s, _level_of(text), process, "", text)


def _level_of(text: str) -> str:
    if text.startswith(_CRASHES):
        return "critical"
    words = [word.strip() for word in text.lower().split(":")[:2]]
    return next((level for level in ("error", "warning") if level in words), "info")


def last_lines(path: Path, process: str) -> list[str]:
    """Return the last lines of a process's log as text, at most LAST_LINES; none if it can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_TAIL_BYTES))
            tail = file.read().decode(errors="replace")
            written_s = path.stat().st_mtime
    except OSError:
        return []
    lines: deque[str] = deque(maxlen=LAST_LINES)
    for line in tail.splitlines():
        if lines and lines[0].startswith(_DUMP) and len(lines) == LAST_LINES:
            break  # a dump's first lines say most: they have the innermost call
        if line.startswith(_DUMP):
            lines.clear()
        if line.strip():
            record = read_line(line, process, written_s)
            lines.extend(record.to_text().splitlines() if record.logger else [line.rstrip()])
    return list(lines)
