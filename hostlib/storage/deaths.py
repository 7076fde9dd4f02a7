"""Number of times that a process died in a library that works on a file, as the file's folder remembers it.

A library that finds nonsense in its file may stop the process by a signal, and does so again at each start.
Python's fault handler writes what it was doing into a file beside it. A process that was killed, or a machine
that lost its power, leaves nothing there.
"""

from __future__ import annotations

import faulthandler
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_BEGINS: Final = "Fatal Python error"
MOST_BYTES: Final = 1 << 16
"""Number of bytes read of what is remembered."""


class Deaths:
    """Remembered in `path`, if the process counts them."""

    def __init__(self, path: Path, counts: bool) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._inside = 0
        said = _text(path)
        self.count = said.count(_BEGINS)
        if said:
            log.warning("the process died here before:\n%s", said.rstrip())
        self._file = path.open("ab") if counts else None

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Record a death of the process while the library is at work."""
        if self._file is None:
            yield
            return
        with self._lock:
            self._inside += 1
            faulthandler.enable(self._file, all_threads=False)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    faulthandler.enable()

    def forget(self) -> None:
        """Forget all deaths: the file is another one from now on, or nothing happened to the end."""
        self.count = 0
        if self._file is not None:
            self._file.truncate(0)
        else:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remember no more."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""
