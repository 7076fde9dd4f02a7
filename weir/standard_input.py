"""Reader of standard input as the command line of a long-running process. Needs the standard library only."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def follow_commands(on_line: Callable[[str], bool], on_end: Callable[[], None]) -> None:
    """Pass each line of standard input to `on_line`, in a thread of its own; call `on_end` when input ends.

    `on_line` returns False to stop reading. When standard input ends, the process that started this one is
    gone. If standard input is /dev/null, as under systemd and nohup, nothing is read: only signals end the
    process.
    """
    if not _is_null():
        threading.Thread(target=_follow, args=(on_line, on_end), daemon=True).start()


def _is_null() -> bool:
    try:
        return os.fstat(sys.stdin.fileno()).st_rdev == Path(os.devnull).stat().st_rdev
    except (OSError, ValueError, AttributeError):
        return False


def _follow(on_line: Callable[[str], bool], on_end: Callable[[], None]) -> None:
    for line in sys.stdin:
        if not on_line(line.strip()):
            break
    on_end()
