"""A command on a terminal of a given size, as a person would see it."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence

_FRAME = re.compile(r"(?:\x1b\[1A\x1b\[2K)+")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def run_in_terminal(command: Sequence[str], columns: int, rows: int) -> tuple[int, list[str]]:
    """The exit code, and what was drawn, picture by picture, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    # These two override the terminal's own size, and whoever runs the tests may have them.
    inherited = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
    environment = {**inherited, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = bytearray()
        with contextlib.suppress(OSError):  # EIO: nobody is at the other end any more
            while part := os.read(ours, 1 << 16):
                said += part
        os.close(ours)
    text = said.decode(errors="replace")
    return process.returncode, [_ESCAPES.sub("", frame) for frame in _FRAME.split(text)]
