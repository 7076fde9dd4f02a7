"""Real KV as the content of blocks: a file with the bytes that a model computed for each block of a trace.

    8 bytes   magic "WEIRKV01"
    8 bytes   number of blocks, little-endian
    8 bytes   bytes of each block
    then      the blocks' keys, 16 bytes each
    then      their contents, in the same order

All hosts of a run map the same file, so it is in memory once. `emulator.kv_blocks` writes it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from hostlib.protocol.errors import ConfigError
from hostlib.protocol.wire import KEY_BYTES

_HEADER = struct.Struct("<8sQQ")
_MAGIC = b"WEIRKV01"


class KvFile:
    """The contents by key."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises ConfigError if it is no such file, or not all of one."""
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        except ValueError:
            raise ConfigError(f"{path}: empty") from None
        if len(self._bytes) < _HEADER.size:
            raise ConfigError(f"{path}: no file of KV blocks")
        magic, count, self.block_bytes = _HEADER.unpack_from(self._bytes)
        self._first = _HEADER.size + count * KEY_BYTES
        if magic != _MAGIC or len(self._bytes) != self._first + count * self.block_bytes:
            raise ConfigError(f"{path}: no file of KV blocks, or not all of it")
        keys = self._bytes[_HEADER.size : self._first]
        self._index = {keys[at : at + KEY_BYTES]: at // KEY_BYTES for at in range(0, len(keys), KEY_BYTES)}
        self._path = path

    def __len__(self) -> int:
        return len(self._index)

    def __call__(self, key: bytes, block_bytes: int) -> bytes:
        """Return the content of a block; ConfigError if the file lacks it, or has it in another size."""
        index = self._index.get(key)
        if index is None or block_bytes != self.block_bytes:
            raise ConfigError(f"{self._path} has no block {key.hex()} of {block_bytes} bytes")
        begin = self._first + index * self.block_bytes
        return self._bytes[begin : begin + self.block_bytes]

    def close(self) -> None:
        """Unmap the file."""
        self._bytes.close()


def write_header(file: BinaryIO, keys: Iterable[bytes], block_bytes: int) -> None:
    """Write everything before the contents, which are to follow in the order of the keys."""
    listed = list(keys)
    file.write(_HEADER.pack(_MAGIC, len(listed), block_bytes))
    file.write(b"".join(listed))
