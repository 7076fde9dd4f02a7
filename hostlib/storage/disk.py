"""Interface of a storage node's disk, and LMDB as one.

A batch is written as a whole or not at all. A power cut may undo it until the next `sync`; what was written
before a sync that returned is safe. `hostlib.storage.simulated_disk` is a disk that forgets, for tests.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeVar

import lmdb

from hostlib.protocol.block import NAME_BYTES
from hostlib.protocol.errors import ConfigError, DiskError, DiskFullError, UnreadableError
from hostlib.protocol.tombstones import NOTE_NAME_LENGTHS
from hostlib.storage.deaths import Deaths
from hostlib.storage.lmdb_check import DamagedError, check

log = logging.getLogger(__name__)

Batch = Sequence[tuple[bytes, bytes | None]]
"""Records by name, None to delete one; carried out in order."""
T = TypeVar("T")
_SLACK_BYTES = 64 << 20
_DAMAGED = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.VersionMismatchError)
KEY_LENGTHS: Final = (NAME_BYTES, *NOTE_NAME_LENGTHS)
"""Lengths of the keys of all records in bytes. A file with others is put aside."""
MOST_DEATHS: Final = 2
"""A file in which the process died so often is put aside."""


class Disk(Protocol):
    """Records by name. `write` and `sync` are called by one thread at a time, `read` by one, which may be
    others than that of the event loop."""

    def write(self, batch: Batch) -> None:
        """Write all of a batch or nothing; raises DiskFullError or DiskError."""

    def sync(self) -> None:
        """Have what was written on stable storage when this returns. Raises DiskError if that can't be."""

    def read(self, name: bytes, take: Callable[[memoryview], T]) -> T | None:
        """Return what `take` makes of a record, which is there for it as long as it runs; None if there is
        none. Raises UnreadableError."""

    def scan(self) -> Iterator[tuple[bytes, memoryview]]:
        """Yield all records in the order of their names; a view is valid until the next is asked for. Raises
        UnreadableError where no more can be read."""

    def close(self) -> None:
        """Release it, without a sync."""


class LmdbDisk:
    """An LMDB environment in `directory`, of at most `map_bytes`.

    A commit writes its data through to the disk before the page that refers to it is written, and that page
    is synced by `sync` (MDB_NOMETASYNC): a power cut may undo the last commits and damages nothing. A data
    file that LMDB can't work on (torn, rotten, or of something else), or in which the process died twice, is
    put aside as data.mdb.damaged, and `was_damaged` says so: what it held has to come from the replicas.
    """

    def __init__(self, directory: Path, map_bytes: int, counts_deaths: bool = False) -> None:
        """`counts_deaths` uses Python's fault handler, of which a process has one."""
        self.was_damaged = False
        self._is_open = True
        """Whether LMDB works on the file; false after an error until it can be opened again."""
        self._directory = directory
        self._map_bytes = map_bytes + _SLACK_BYTES
        self._reading = threading.Lock()
        """Held by who reads, and by who opens the environment anew."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(directory)
        except OSError as error:
            raise ConfigError(f"SSD directory {directory}: {error}") from None
        try:
            self._deaths = Deaths(directory / "died.txt", counts_deaths)
            reason = self._what_is_wrong()
            try:
                if reason:
                    raise lmdb.CorruptedError(reason)
                self._env = self._open()
            except lmdb.Error as error:
                if not isinstance(error, _DAMAGED) and os.strerror(errno.EIO) not in str(error):
                    raise
                self._put_aside(str(error))
                self._env = self._open()
        except (OSError, lmdb.Error) as error:
            os.close(self._lock)
            raise ConfigError(f"SSD directory {directory}: {error}") from None

    def write(self, batch: Batch) -> None:
        """See Disk."""
        self._open_again()
        try:
            with self._deaths.noticed(), self._env.begin(write=True) as transaction:
                for name, record in batch:
                    if record is None:
                        transaction.delete(name)
                    else:
                        transaction.put(name, record)
        except (lmdb.MapFullError, lmdb.DiskError) as error:
            raise DiskFullError(f"{self._directory}: {error}") from None
        except lmdb.Error as error:
            if isinstance(error, lmdb.PanicError):
                log.warning("%s is opened again: %s", self._directory, error)
                self._is_open = False
            if os.strerror(errno.ENOSPC) in str(error) or os.strerror(errno.EDQUOT) in str(error):
                raise DiskFullError(f"{self._directory}: {error}") from None
            raise DiskError(f"{self._directory}: {error}") from None

    def sync(self) -> None:
        """See Disk."""
        try:
            with self._deaths.noticed():
                self._env.sync(True)
        except lmdb.Error as error:
            raise DiskError(f"{self._directory}: {error}") from None

    def read(self, name: bytes, take: Callable[[memoryview], T]) -> T | None:
        """See Disk."""
        self._open_again()
        try:
            with (
                self._reading,
                self._deaths.noticed(),
                self._env.begin(buffers=True) as transaction,
            ):
                record = transaction.get(name)
                return None if record is None else take(record)
        except lmdb.Error as error:
            raise UnreadableError(f"{self._directory}: {error}") from None

    def scan(self) -> Iterator[tuple[bytes, memoryview]]:
        """See Disk."""
        try:
            with (
                self._deaths.noticed(),
                self._env.begin(buffers=True) as transaction,
                transaction.cursor() as cursor,
            ):
                for name, record in cursor:
                    yield bytes(name), record
        except lmdb.Error as error:
            raise UnreadableError(f"{self._directory}: {error}") from None

    def close(self) -> None:
        """See Disk."""
        with self._reading:
            self._env.close()
        self._deaths.forget()
        self._deaths.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _open(self) -> lmdb.Environment:
        with self._deaths.noticed():
            return lmdb.open(str(self._directory), map_size=self._map_bytes, metasync=False)

    def _open_again(self) -> None:
        """Open the environment again: LMDB does nothing any more with one whose meta page could not be
        written."""
        if self._is_open:
            return
        with self._reading:
            if self._is_open:  # by the other thread
                return
            self._env.close()
            with suppress(lmdb.Error):  # the next use tries again
                self._env = self._open()
                self._is_open = True

    def _what_is_wrong(self) -> str:
        """Return what is wrong with the data file, if there is one; empty for nothing."""
        if self._deaths.count >= MOST_DEATHS:
            return f"the process died {self._deaths.count} times in LMDB"
        try:
            check(self._directory / "data.mdb", KEY_LENGTHS)
        except FileNotFoundError:
            pass
        except (DamagedError, OSError) as error:
            return str(error)
        return ""

    def _put_aside(self, reason: str) -> None:
        file, aside = self._directory / "data.mdb", self._directory / "data.mdb.damaged"
        file.replace(aside)
        (self._directory / "lock.mdb").unlink(missing_ok=True)
        self._deaths.forget()
        self.was_damaged = True
        kept = f"it is put aside as {aside.name}"
        if shutil.disk_usage(self._directory).free < aside.stat().st_blocks * 512:
            aside.unlink()  # a new one would not have the room
            kept = "it is deleted, as there is no room for another beside it"
        log.warning("%s is damaged (%s): %s, and what it held is copied from replicas", file, reason, kept)


def _lock(directory: Path) -> int:
    """Return a descriptor that keeps other storage nodes off the directory until it is closed."""
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise ConfigError(
                f"SSD directory {directory}: another storage node uses it; give each its own (ssd_dir)"
            ) from None
        raise
    return lock
