"""Frames are sent as they were when they were queued."""

from __future__ import annotations

from typing import Any

from hostlib.engine.frames import Channel


class Slow:
    """A connection that takes nothing yet; it keeps what it was given, as asyncio's does."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def write(self, data: Any) -> None:
        self.waiting.append(data)


def test_a_body_that_waits_is_not_changed_with_its_buffer() -> None:
    """A store that is given up frees its buffer: the frame left over must not carry the next one."""
    slow: Any = Slow()
    body = bytearray(b"kv of one block")
    Channel(slow, slow).send({"n": 1}, memoryview(body))
    body[:] = b"kv of the other"
    assert b"".join(slow.waiting).endswith(b"kv of one block")
