"""What a storage node needs of a disk, and LMDB as one.

A batch is written as a whole or not at all. It may be undone by a power cut until the next `sync`; what was
written before a sync that returned is safe. `hostlib.simulated_disk` is a disk that forgets, for tests.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import lmdb

from hostlib.errors import ConfigError, DiskError, DiskFullError, UnreadableError

Batch = Sequence[tuple[bytes, bytes | None]]
"""Records by name, None to delete one; carried out in order."""
_SLACK_BYTES = 64 << 20
_DAMAGED = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.VersionMismatchError)


class Disk(Protocol):
    """Records by name. `write` and `sync` are called by one thread at a time, which may be another than the
    readers'."""

    def write(self, batch: Batch) -> None:
        """All of it or nothing; DiskFullError, DiskError."""

    def sync(self) -> None:
        """Returns when what was written is on stable storage; DiskError if that can't be."""

    def read(self, name: bytes) -> bytes | None:
        """A record, None if there is none; UnreadableError."""

    def scan(self) -> Iterator[tuple[bytes, memoryview]]:
        """All records in the order of their names; a view is valid until the next is asked for.
        UnreadableError where no more can be read."""

    def close(self) -> None:
        """Release it, without a sync."""


class LmdbDisk:
    """An LMDB environment in `directory`, of at most `map_bytes`.

    A commit writes its data through to the disk before the page that refers to it is written, and that page
    is synced by `sync` (MDB_NOMETASYNC): a power cut may undo the last commits and damages nothing. A data
    file that is no LMDB environment (torn, or of something else) is put aside as data.mdb.damaged, and
    `was_damaged` says so: what it held has to come from the replicas.
    """

    def __init__(self, directory: Path, map_bytes: int) -> None:
        self.was_damaged = False
        self._directory = directory
        self._map_bytes = map_bytes + _SLACK_BYTES
        try:
            directory.mkdir(parents=True, exist_ok=True)
            try:
                self._env = self._open()
            except _DAMAGED:
                (directory / "data.mdb").replace(directory / "data.mdb.damaged")
                (directory / "lock.mdb").unlink(missing_ok=True)
                self.was_damaged = True
                self._env = self._open()
        except (OSError, lmdb.Error) as error:
            raise ConfigError(f"SSD directory {directory}: {error}") from None

    def write(self, batch: Batch) -> None:
        """See Disk."""
        try:
            with self._env.begin(write=True) as transaction:
                for name, record in batch:
                    if record is None:
                        transaction.delete(name)
                    else:
                        transaction.put(name, record)
        except (lmdb.MapFullError, lmdb.DiskError) as error:
            raise DiskFullError(f"{self._directory}: {error}") from None
        except lmdb.Error as error:
            if os.strerror(errno.ENOSPC) in str(error) or os.strerror(errno.EDQUOT) in str(error):
                raise DiskFullError(f"{self._directory}: {error}") from None
            raise DiskError(f"{self._directory}: {error}") from None

    def sync(self) -> None:
        """See Disk."""
        try:
            self._env.sync(True)
        except lmdb.Error as error:
            raise DiskError(f"{self._directory}: {error}") from None

    def read(self, name: bytes) -> bytes | None:
        """See Disk."""
        try:
            with self._env.begin() as transaction:
                record: bytes | None = transaction.get(name)
                return record
        except lmdb.Error as error:
            raise UnreadableError(f"{self._directory}: {error}") from None

    def scan(self) -> Iterator[tuple[bytes, memoryview]]:
        """See Disk."""
        try:
            with self._env.begin(buffers=True) as transaction, transaction.cursor() as cursor:
                for name, record in cursor:
                    yield bytes(name), record
        except lmdb.Error as error:
            raise UnreadableError(f"{self._directory}: {error}") from None

    def close(self) -> None:
        """See Disk."""
        self._env.close()

    def _open(self) -> lmdb.Environment:
        return lmdb.open(str(self._directory), map_size=self._map_bytes, metasync=False)
