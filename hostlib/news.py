"""New blocks of a storage node, as it tells the controller of them: KEYS with its heartbeat.

A switch reports what is fetched, and nobody fetches a block that was just written. Told of it, the
controller can have it in the pool before it is asked for."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from hostlib import wire
from hostlib.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENTRY: Final = struct.Struct(">HHHHI16s")
ENTRIES: Final = wire.VALUE_BYTES // _ENTRY.size
"""In one message."""
MAX_WAITING: Final = 1024
"""Blocks; of more, the oldest are not told."""
MAX_MESSAGES: Final = 4
"""With one heartbeat: 720 blocks a second."""


class NewBlock(NamedTuple):
    """A block that was not there before, as who put it named it."""

    tenant: int
    fragments: int
    depth: int
    chain_blocks: int
    parent: int
    """First 32 bits of the parent's key, 0 for none."""
    key: bytes


class NewsToTell:
    """Blocks that wait to be told."""

    def __init__(self) -> None:
        self._waiting: deque[NewBlock] = deque(maxlen=MAX_WAITING)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, block: NewBlock) -> None:
        """A block is whole."""
        self._waiting.append(block)

    def messages(self, backlog_ms: int, epoch: int) -> Iterator[bytes]:
        """What is to be sent now; `backlog_ms` waits on the node's link."""
        for _ in range(MAX_MESSAGES):
            if not self._waiting:
                break
            entries = [self._waiting.popleft() for _ in range(min(ENTRIES, len(self._waiting)))]
            yield wire.encode(
                wire.Message(
                    wire.OP_KEYS, bytes(wire.KEY_BYTES), 0, 0, backlog_ms=backlog_ms, epoch=epoch,
                    value=b"".join(_ENTRY.pack(*entry) for entry in entries),
                )
            )  # fmt: skip


def read_news(value: wire.Buffer) -> list[NewBlock]:
    """The blocks in a message; raises MalformedError."""
    if len(value) % _ENTRY.size:
        raise MalformedError("length")
    blocks = [NewBlock._make(fields) for fields in _ENTRY.iter_unpack(value)]
    if any(not block.fragments for block in blocks):
        raise MalformedError("fragments")
    return blocks
