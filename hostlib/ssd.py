"""The SSD tier of a storage node, in LMDB: bounded, the oldest blocks leave first, survives restarts.

`blocks` maps a key to its age number and its content; `ages` maps age numbers to keys, oldest first. A
block without content is one whose emulated content is derived from its key when it is read, so that a
hundred thousand blocks can be there from the start (`preload`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

from hostlib.content import block_content
from hostlib.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_AGE_BYTES = 8
_PAGE_BYTES = 4096
_SLACK_BYTES = 64 << 20


class SsdTier:
    """At most `capacity_bytes` of blocks of `block_bytes` each, in the LMDB environment `directory`."""

    def __init__(self, directory: Path, capacity_bytes: int, block_bytes: int) -> None:
        self.dropped = 0
        self._block_bytes = block_bytes
        self._capacity = capacity_bytes // block_bytes
        pages = -(-(block_bytes + _AGE_BYTES) // _PAGE_BYTES) + 1
        map_bytes = 2 * self._capacity * pages * _PAGE_BYTES + _SLACK_BYTES
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # A crash of the machine may lose blocks, a crash of the process does not: right for a cache.
            self._env = lmdb.open(str(directory), map_size=map_bytes, max_dbs=2, sync=False, metasync=False)
            self._blocks = self._env.open_db(b"blocks")
            self._ages = self._env.open_db(b"ages")
        except (OSError, lmdb.Error) as error:
            raise ConfigError(f"SSD directory {directory}: {error}") from None

    def __len__(self) -> int:
        with self._env.begin() as transaction:
            return int(transaction.stat(self._blocks)["entries"])

    def __contains__(self, key: bytes) -> bool:
        with self._env.begin(db=self._blocks) as transaction:
            return transaction.get(key) is not None

    def get(self, key: bytes) -> bytes | None:
        """The block's content, or None."""
        with self._env.begin(db=self._blocks, buffers=True) as transaction:
            entry = transaction.get(key)
            if entry is None:
                return None
            content = bytes(entry[_AGE_BYTES:])
        if not content:
            return block_content(key, self._block_bytes)
        return content if len(content) == self._block_bytes else None  # else: of another scale

    def put(self, key: bytes, content: bytes | None) -> None:
        """Keep a block as the youngest; None keeps it as one whose content derives from its key."""
        self.put_many([(key, content)])

    def put_many(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Keep several blocks, oldest first, in one transaction."""
        if not self._capacity:
            return
        with self._env.begin(write=True) as transaction:
            count = int(transaction.stat(self._blocks)["entries"])
            age = self._youngest(transaction)
            for key, content in entries:
                age += 1
                stamp = age.to_bytes(_AGE_BYTES, "big")
                old = transaction.get(key, db=self._blocks)
                if old is not None:
                    transaction.delete(old[:_AGE_BYTES], db=self._ages)
                elif count >= self._capacity:
                    self._drop_oldest(transaction)
                else:
                    count += 1
                transaction.put(key, stamp + (content or b""), db=self._blocks)
                transaction.put(stamp, key, db=self._ages)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _youngest(self, transaction: lmdb.Transaction) -> int:
        with transaction.cursor(db=self._ages) as cursor:
            return int.from_bytes(cursor.key(), "big") if cursor.last() else 0

    def _drop_oldest(self, transaction: lmdb.Transaction) -> None:
        with transaction.cursor(db=self._ages) as cursor:
            if cursor.first():
                transaction.delete(cursor.value(), db=self._blocks)
                cursor.delete()
                self.dropped += 1
