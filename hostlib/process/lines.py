"""JSON lines over a Unix socket: how the programs of a run speak beside the network of KV.

Router, index and nodes use them. The network of such words is not that of KV (as with Mooncake, where
requests come over HTTP and KV over RDMA), so they take nothing from the modelled links.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from hostlib.protocol.errors import ConfigError, LineError
from hostlib.protocol.wire import KEY_BYTES

MAX_LINE_BYTES: Final = 1 << 20
KEYS_A_LINE: Final = 4096
_BACKLOG_CONNECTIONS: Final = 1024


def to_line(message: dict[str, Any]) -> bytes:
    """Return a message as it is sent."""
    return json.dumps(message).encode() + b"\n"


async def read_lines(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """Yield messages until the end; raises LineError for what is none."""
    try:
        async for line in reader:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError(f"a JSON object is expected, not {message!r}")
            yield message
    except (ValueError, RecursionError) as error:
        raise LineError(f"not a message between the programs of a run: {error}") from None
    except ConnectionError as error:
        raise LineError(f"a connection between the programs of a run broke: {error}") from None


def in_lines(name: str, keys: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield keys in messages of bounded length."""
    left = iter(keys)
    while part := [key.hex() for key in islice(left, KEYS_A_LINE)]:
        yield {name: part}


def keys_in(message: dict[str, Any], name: str) -> list[bytes]:
    """Return the keys under that name, none where it is absent; raises LineError for what are none."""
    try:
        keys = [bytes.fromhex(key) for key in message.get(name, ())]
        if any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        return keys
    except (TypeError, ValueError) as error:
        raise LineError(f"{name}: not a list of keys: {error}") from None


def listen_at(path: str) -> socket.socket:
    """Return a socket that listens at once: others may come before the run begins. Raises ConfigError."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
        listener.listen(_BACKLOG_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise ConfigError(f"socket: {path}: {error.strerror or error}") from None
    return listener
