"""Group commit: many blocks share one write and one sync of a disk, and each hears when it is safe.

What is offered within a few milliseconds is written together, by another thread, so that the network goes on
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hostlib.protocol.block import encode_record, record_bytes
from hostlib.protocol.errors import DiskError, DiskFullError

if TYPE_CHECKING:
    from hostlib.protocol.block import Block, Derived, Place
    from hostlib.storage.disk import Disk

Done = Callable[[DiskError | None], None]
"""Told that the record is on stable storage, or why it is not there."""
Runner = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function that may block."""


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Times in seconds."""

    gather_s: float = 0.003
    """Seconds that the first write of a group waits for others."""
    max_batch_bytes: int = 32 << 20


@dataclass(slots=True)
class _Write:
    place: Place
    age: int
    block: Block | Derived
    size: int
    done: list[Done]

    def record(self) -> bytes:
        return encode_record(self.place, self.age, self.block)


@dataclass(slots=True)
class _Note:
    """A small record that is no block's."""

    content: bytes
    done: list[Done]
    block: None = None

    @property
    def size(self) -> int:
        return len(self.content)

    def record(self) -> bytes:
        return self.content


class GroupCommit:
    """See the module. `run` carries out what blocks; a thread of its own by default."""

    def __init__(self, disk: Disk, options: CommitOptions | None = None, run: Runner | None = None) -> None:
        self.commits = 0
        self.was_written = False
        """Whether the disk took the last group, be it that it could not sync it."""
        self._disk = disk
        self._options = options or CommitOptions()
        self._threads = ThreadPoolExecutor(1, "commit")
        self._run = run or self._in_thread
        self._waiting: dict[bytes, _Write | _Note] = {}
        self._writing: dict[bytes, _Write | _Note] = {}
        self._deletes: dict[bytes, None] = {}
        self._deleting: dict[bytes, None] = {}
        self._bytes = 0
        """Of what waits and is being written."""
        self._bytes_per_s = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of records that are not safe yet."""
        return self._bytes

    @property
    def waiting_records(self) -> int:
        """Return the number of records to be written or deleted."""
        return len(self._waiting) + len(self._writing) + len(self._deletes)

    def wait_s(self) -> float:
        """Return how long what is offered now is going to wait, by the rate of the last commits."""
        return self._bytes / self._bytes_per_s if self._bytes_per_s else 0.0

    def put(self, place: Place, age: int, block: Block | Derived) -> None:
        """Write a block's record with the next group."""
        self._put(place.name(), _Write(place, age, block, record_bytes(block), []))

    def note(self, name: bytes, record: bytes) -> None:
        """Write a record that is no block's with the next group."""
        self._put(name, _Note(record, []))

    def _put(self, name: bytes, write: _Write | _Note) -> None:
        """Queue a record. If it is to be deleted, it is deleted all the same: this one may come in a later
        group."""
        before = self._waiting.get(name)
        if before is not None:  # who waits for it waits for what takes its place
            self._bytes -= before.size
            write.done += before.done
        self._waiting[name] = write
        self._bytes += write.size
        self._start()

    def delete(self, name: bytes) -> None:
        """Delete a record with the next group; what waits of it is told that there is no room for it."""
        write = self._waiting.pop(name, None)
        if write is not None:
            self._finish([write], DiskFullError("left to make room before it was written"))
        self._deletes[name] = None
        self._start()

    def when_safe(self, name: bytes, done: Done) -> bool:
        """Call `done` when a record that was put is safe; False if it is safe already, or unknown."""
        write = self._waiting.get(name) or self._writing.get(name)
        if write is not None:
            write.done.append(done)
        return write is not None

    def is_waiting(self, name: bytes) -> bool:
        """Return whether a record was put and is neither safe nor refused yet."""
        return name in self._waiting or name in self._writing

    def block(self, name: bytes) -> Block | Derived | None:
        """Return a block whose record is not safe yet."""
        write = self._waiting.get(name) or self._writing.get(name)
        return write.block if write is not None else None

    def flush(self) -> None:
        """Write and sync all that waits, now and blocking; DiskError. For a clean stop: nobody is told."""
        if self._task is not None:
            self._task.cancel()
        self._threads.shutdown(wait=True)
        writing = {name: write for name, write in self._writing.items() if name not in self._deletes}
        left = {**writing, **self._waiting}
        self._disk.write([(name, None) for name in self._deleting | self._deletes])
        self._disk.write([(name, write.record()) for name, write in left.items()])
        self._disk.sync()

    def abandon(self) -> None:
        """Write nothing any more: for tests of crashes."""
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting or self._deletes:
                await asyncio.sleep(self._options.gather_s)
                await self._commit()
        finally:
            self._task = None

    async def _commit(self) -> None:
        self._deleting, self._deletes = self._deletes, {}
        self._writing = self._next_batch()
        gone: list[tuple[bytes, bytes | None]] = [(name, None) for name in self._deleting]
        work = partial(self._write, gone, list(self._writing.items()))
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        error: DiskError | None = None
        try:
            await self._run(work)
        except DiskError as reason:
            error = reason
        if error is not None and gone:
            await self._delete_alone(gone)
        self._deleting = {}
        if error is None:
            self.commits += 1
            self._measure(sum(write.size for write in self._writing.values()), loop.time() - began_s)
        writes, self._writing = list(self._writing.values()), {}
        self._finish(writes, error)

    def _write(
        self, gone: list[tuple[bytes, bytes | None]], writes: list[tuple[bytes, _Write | _Note]]
    ) -> None:
        """Write a group. Records are made here, in the thread that writes them."""
        self.was_written = False
        self._disk.write([*gone, *((name, write.record()) for name, write in writes)])
        self.was_written = True
        self._disk.sync()

    async def _delete_alone(self, gone: list[tuple[bytes, bytes | None]]) -> None:
        """Delete records in a batch of their own: what makes room must not fail with what there is no room
        for."""

        def work() -> None:
            self._disk.write(gone)

        try:
            await self._run(work)
        except DiskError:
            self._deletes = self._deleting | self._deletes
            await asyncio.sleep(1.0)

    def _next_batch(self) -> dict[bytes, _Write | _Note]:
        batch: dict[bytes, _Write | _Note] = {}
        size = 0
        for name, write in self._waiting.items():
            if batch and size + write.size > self._options.max_batch_bytes:
                break
            batch[name] = write
            size += write.size
        for name in batch:
            del self._waiting[name]
        return batch

    def _measure(self, size: int, took_s: float) -> None:
        if size and took_s > 0:
            rate = size / took_s
            self._bytes_per_s = rate if not self._bytes_per_s else (7 * self._bytes_per_s + rate) / 8

    def _finish(self, writes: Sequence[_Write | _Note], error: DiskError | None) -> None:
        for write in writes:
            self._bytes -= write.size
            for done in write.done:
                done(error)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, work)
