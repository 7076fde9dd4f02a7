"""Lock that lets one command at a time use a folder of results; a second one waits and says so."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WAITING = "another command uses {folder}: waiting until it has ended (RESULTS=folder takes another)"


@contextmanager
def one_at_a_time(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder for the block; `say` gets a sentence if another process holds it.

    Raises OSError if nothing can be written beside the folder.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(WAITING.format(folder=folder))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
