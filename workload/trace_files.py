"""Reader of traces from files and folders. A file's content decides on its kind, not its name.

It reads JSON lines or a JSON array in Mooncake's or Bailian's schema (`trace_lines.py`), tables of Azure and
BurstGPT (`trace_tables.py`), and agents' sessions, one a file, a line or an item of an array (`sessions.py`).
A file may be compressed with gzip and may begin with a byte order mark. Files above a limit are refused.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import IO, Any

from workload.session_service import Service, serve_sessions
from workload.sessions import is_session
from workload.trace import Trace, TraceError
from workload.trace_lines import Numbered, parse_records, read_json
from workload.trace_tables import is_table, parse_table

MAX_FILE_BYTES = 4 << 30
"""Largest number of bytes of a file after decompression."""
MAX_TEXT_CHARS = 256 << 20
"""Largest number of characters of one JSON text, such as a line, an array or a session."""
MAX_FILES = 100_000
"""Largest number of trace files in a folder."""
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Ends of the names of the files that are read from a folder."""
GZIP_MAGIC = b"\x1f\x8b"


def load_trace(path: str | Path, service: Service | None = None, *, keeps_times: bool = False) -> Trace:
    """Return the trace of a file, or of a file or folder of sessions, which are served as `service` says.

    If the first request comes late, times count from it; with `keeps_times` they stay as they are. Raises
    TraceError with file, line or request, and reason.
    """
    path, service = Path(path), service or Service()
    if path.is_dir():
        return serve_sessions(str(path), [partial(_sessions, file) for file in session_files(path)], service)
    with _lines(path) as lines:
        head = next(lines, "")
        if is_table(head):
            return parse_table(chain([head], lines), str(path))
        records = _records(chain([head], lines), str(path))
        first = next(records, None)
        if first is not None and is_session(first[1]):
            return serve_sessions(str(path), [partial(_sessions, path)], service)
        return parse_records(chain(() if first is None else [first], records), str(path), keeps_times)


def session_files(folder: Path) -> list[Path]:
    """Return the files of sessions in a folder, in order of name.

    A symbolic link is refused: it may lead out of the folder, or to a file that is in the folder, too.
    """
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.lower().endswith(SUFFIXES):
                    continue
                if entry.is_symlink():
                    raise TraceError(f"{entry.path}: a symbolic link: copy the file into the folder instead")
                if not entry.is_file():
                    raise TraceError(f"{entry.path}: not a file")
                if len(found) >= MAX_FILES:
                    raise TraceError(f"{folder}: more than {MAX_FILES:,} files: use fewer")
                found.append(Path(entry.path))
    except OSError as error:
        raise TraceError(f"{folder}: {error.strerror}") from None
    if not found:
        raise TraceError(f"{folder}: no sessions in it: there is no file named *{', *'.join(SUFFIXES)}")
    return sorted(found)


def _sessions(path: Path) -> Iterator[tuple[str, object]]:
    """Yield name and JSON value of each session of a file."""
    found = False
    with _lines(path) as lines:
        for number, record in _records(lines, str(path)):
            yield (str(path) if number == 1 else f"{path}:{number}"), record
            found = True
    if not found:
        raise TraceError(f"{path}: no session in it")


def _records(lines: Iterator[str], name: str) -> Iterator[Numbered]:
    """Yield (number, JSON value) of each line, of each item of an array, or of one value over many lines."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    for first, line in numbered:
        try:
            record = read_json(line, name, first)
        except TraceError as error:
            record = _whole(chain([line], (rest for _, rest in numbered)), error)
        if isinstance(record, list):
            yield from enumerate(record, 1)
        else:
            yield first, record
        break
    for number, line in numbered:
        yield number, read_json(line, name, number)


def _whole(lines: Iterator[str], error: TraceError) -> object:
    """Return the JSON value of all lines together; raises `error` if they are not JSON."""
    text: list[str] = []
    left = MAX_TEXT_CHARS
    for line in lines:
        left -= len(line)
        if left < 0:
            raise error
        text.append(line)
    try:
        return json.loads("".join(text))
    except (ValueError, RecursionError):
        raise error from None


class _Bounded(io.RawIOBase):
    """Stream that can be read up to MAX_FILE_BYTES; it raises TraceError beyond."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, name: str) -> None:
        super().__init__()
        self._stream, self._name, self._left = stream, name, MAX_FILE_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._stream.read(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise TraceError(f"{self._name}: larger than {MAX_FILE_BYTES >> 30} GiB: use a part of it")
        view[: len(data)] = data
        return len(data)


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file, which may be compressed, and give its lines."""
    try:
        with _opened(path) as stream:
            text = io.TextIOWrapper(
                io.BufferedReader(_Bounded(stream, str(path)), 1 << 20), encoding="utf-8-sig", newline=None
            )
            yield _bounded_lines(text, path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: not a whole gzip file ({error})") from None
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None


def _bounded_lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    for number in count(1):
        line = text.readline(MAX_TEXT_CHARS)
        if len(line) >= MAX_TEXT_CHARS:
            raise TraceError(f"{path}:{number}: longer than {MAX_TEXT_CHARS >> 20} Mi characters")
        if not line:
            return
        yield line


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a regular file and give its bytes, decompressed; other files, such as pipes, could be endless."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise TraceError(f"{path}: not a regular file")
        is_gzip = file.peek(2)[:2] == GZIP_MAGIC
        if not is_gzip:
            yield file
            return
        with gzip.open(file) as unpacked:
            yield unpacked
