"""A disk in memory that forgets what was not synced, and fails when told to: for tests of what storage
promises."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from hostlib.protocol.errors import DiskError, DiskFullError, UnreadableError
from hostlib.storage.disk import KEY_LENGTHS, Batch, T


class SimulatedDisk:
    """A `hostlib.storage.disk.Disk`. `capacity_bytes` bounds the records; other attributes are what befalls
    it."""

    def __init__(self, capacity_bytes: int = 1 << 40, seed: int = 0) -> None:
        self.capacity_bytes = capacity_bytes
        self.full = False
        self.failing = False
        """Whether each write and sync gives an error."""
        self.syncs_nothing = False
        """Whether each sync gives an error."""
        self.unreadable: set[bytes] = set()
        """Names of records that give an error."""
        self.syncs = 0
        self._seen: dict[bytes, bytes] = {}
        """What a reader sees."""
        self._safe: dict[bytes, bytes] = {}
        """What was synced."""
        self._bytes = 0
        """Of what a reader sees."""
        self._unsynced: list[Batch] = []
        self._random = random.Random(seed)

    def write(self, batch: Batch) -> None:
        """See Disk."""
        assert all(len(name) in KEY_LENGTHS for name, _ in batch)
        if self.failing:
            raise DiskError("simulated error")
        grown = _growth(self._seen, batch)
        if self.full or self._bytes + grown > self.capacity_bytes:
            raise DiskFullError("simulated disk full")
        self._bytes += grown
        _apply(self._seen, batch)
        self._unsynced.append(batch)

    def sync(self) -> None:
        """See Disk."""
        if self.failing or self.syncs_nothing:
            raise DiskError("simulated error")
        self.syncs += 1
        for batch in self._unsynced:
            _apply(self._safe, batch)
        self._unsynced.clear()

    def synced(self, name: bytes) -> bytes | None:
        """Return a record as it would be after a power cut, if nothing else were left."""
        return self._safe.get(name)

    def read(self, name: bytes, take: Callable[[memoryview], T]) -> T | None:
        """See Disk."""
        if name in self.unreadable:
            raise UnreadableError("simulated unreadable page")
        record = self._seen.get(name)
        return None if record is None else take(memoryview(record))

    def scan(self) -> Iterator[tuple[bytes, memoryview]]:
        """See Disk."""
        for name in sorted(self._seen):
            yield name, memoryview(self._seen[name])

    def close(self) -> None:
        """See Disk."""

    def power_cut(self, keep: bool | None = None) -> None:
        """Lose what was not synced, except for some first batches of it.

        `keep`: all of these are left, or none; by default a random number.
        """
        count = len(self._unsynced)
        kept = self._random.randint(0, count) if keep is None else count * keep
        for batch in self._unsynced[:kept]:
            _apply(self._safe, batch)
        self._seen = dict(self._safe)
        self._bytes = sum(map(len, self._seen.values()))
        self._unsynced.clear()

    def damage(self, name: bytes) -> None:
        """Flip a bit of a record."""
        record = bytearray(self._seen[name])
        record[self._random.randrange(len(record))] ^= 1 << self._random.randrange(8)
        self._seen[name] = self._safe[name] = bytes(record)


def _apply(records: dict[bytes, bytes], batch: Batch) -> None:
    for name, record in batch:
        if record is None:
            records.pop(name, None)
        else:
            records[name] = record


def _growth(records: dict[bytes, bytes], batch: Batch) -> int:
    """Return how many bytes more the records take after a batch."""
    after = dict(batch)
    return sum(len(record or b"") - len(records.get(name, b"")) for name, record in after.items())
