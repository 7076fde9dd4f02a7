"""Messages between the run and the agent of a server: JSON objects, one a line, over an SSH connection."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import IO, Any, Final

MAX_LINE_BYTES: Final = 16 << 20
CHUNK_BYTES: Final = 256 << 10
"""Bytes of a file or of a process's output in one message, at most."""
PYTHON: Final = "{python}"
"""Word that stands for the agent's interpreter in commands."""

Message = dict[str, Any]


class MessageError(Exception):
    """The received bytes are no message."""


class Outgoing:
    """Writer of messages that several threads may share."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def send(self, message: Message) -> None:
        """Write a message; raises OSError or ValueError if the other side is gone."""
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


def incoming(stream: IO[bytes]) -> Iterator[Message]:
    """Yield messages until the other side ends; raises MessageError for a line that is none."""
    while line := stream.readline(MAX_LINE_BYTES):
        if not line.endswith(b"\n"):
            raise MessageError(f"a line of {len(line):,} bytes has no end")
        try:
            message = json.loads(line)
        except ValueError:
            raise MessageError(f"no JSON: {line[:200]!r}") from None
        if not isinstance(message, dict):
            raise MessageError(f"no object: {line[:200]!r}")
        yield message


def to_text(data: bytes) -> str:
    """Return bytes as text for a message."""
    return base64.b64encode(data).decode()


def to_bytes(text: str) -> bytes:
    """Return the bytes that `to_text` encoded."""
    return base64.b64decode(text)
