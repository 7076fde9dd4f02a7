"""Frames are sent as they were when they were queued."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from hostlib.engine.frames import MAX_LINE_BYTES, Channel, Frame
from hostlib.protocol.wire import MAX_BLOCK_BYTES


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


@pytest.mark.parametrize(("said", "body"), [(MAX_LINE_BYTES + 1, 0), (2, MAX_BLOCK_BYTES + 1)])
def test_a_frame_that_says_to_be_longer_than_any_is_not_read(said: int, body: int) -> None:
    async def read() -> Frame | None:
        reader: Any = asyncio.StreamReader()
        reader.feed_data(struct.pack("<II", said, body) + b"{}")
        slow: Any = Slow()
        return await asyncio.wait_for(Channel(reader, slow).read(), 60)

    assert asyncio.run(read()) is None
