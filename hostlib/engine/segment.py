"""Load and store beside blocks: a segment is a range of bytes with one writer, read at its newest version.

Blocks of the pool are immutable, so a version is part of what names a page, and stays what it was:

    page object     key of (segment, page number, stamp of the publish that wrote it: version and random bits)
    commit record   key of (segment, version): writer, size, and each page's stamp

Two who publish the same version at once write pages of their own, and the commit record of one.

Visibility. What a writer stores is seen by nobody before `publish`, and then all of it at once: the commit
record is stored when every page is held. A reader sees the version that it found when it last called
`refresh`, however much is published meanwhile. A writer that publishes a version which another has published
meanwhile gets SecondWriterError, and has to open the segment anew. Where a version that a reader has seen is
gone, `refresh` raises RolledBackError: older bytes are never taken for newer ones.

Neighbouring pages have unrelated keys, so a load or store is spread over all homes.
"""

from __future__ import annotations

import secrets
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hostlib.engine.objects import Item
from hostlib.protocol.errors import HostlibError, TransferTimeoutError
from hostlib.protocol.transfer import BlockRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.engine.objects import ObjectPool
    from hostlib.engine.shared_client import BlockClient
    from hostlib.protocol.seal import Seal
    from hostlib.protocol.wire import Buffer

_PAGE: Final = b"weir segment page"
_COMMIT: Final = b"weir segment commit"
_HEAD = struct.Struct(">16sQQI")
WRITER_BYTES: Final = 16
MAX_PAGES: Final = 1 << 20
STAMP_BITS: Final = 32
"""Random bits of a stamp; the version is above them."""
PROBED_AT_ONCE: Final = 16
"""Commit records that `refresh` asks for ahead of the newest known."""
PROBE_S: Final = 45.0
"""How long `refresh` waits for an answer about them."""


class SegmentError(HostlibError):
    """A segment that can't be loaded from or stored to as asked."""


class SecondWriterError(SegmentError):
    """Another writer has published the version that this one wanted to."""


class RolledBackError(SegmentError):
    """The pool has lost a version that was seen before."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a segment."""

    writer: bytes
    version: int
    size: int
    page_bytes: int
    pages: tuple[int, ...]
    """Each page's stamp; 0 where nothing was written: zeros."""

    def encode(self) -> bytes:
        """The commit record."""
        head = _HEAD.pack(self.writer, self.version, self.size, self.page_bytes)
        return head + struct.pack(f">{len(self.pages)}Q", *self.pages)

    @classmethod
    def decode(cls, record: Buffer) -> Commit:
        """From the network; SegmentError for anything that is no commit record."""
        try:
            writer, version, size, page_bytes = _HEAD.unpack_from(record)
            pages = tuple(number for (number,) in struct.iter_unpack(">Q", record[_HEAD.size :]))
        except struct.error:
            raise SegmentError("what is stored as a commit record is none") from None
        if (
            page_bytes < 1
            or len(pages) != -(-size // page_bytes)
            or max(pages, default=0) >> STAMP_BITS > version
        ):
            raise SegmentError("a commit record contradicts itself")
        return cls(writer, version, size, page_bytes, pages)


class SegmentReader:
    """A segment at one version: that of the last `refresh`."""

    def __init__(self, pool: ObjectPool, client: BlockClient, seal: Seal, name: str) -> None:
        self.commit: Commit | None = None
        self._pool, self._client, self._seal, self._name = pool, client, seal, name.encode()

    async def refresh(self) -> int:
        """Go to the newest version; 0 if none was published yet. Raises TransferError if it can't be had."""
        seen = self.commit.version if self.commit else 0
        newest = seen
        while True:
            ahead = [self._commit(newest + step) for step in range(1, PROBED_AT_ONCE + 1)]
            found = await self._held(ahead)
            newest += found
            if found < PROBED_AT_ONCE:
                break
        if newest == seen and seen and not await self._held([self._commit(seen)]):
            raise RolledBackError(f"segment {self._name.decode()!r}: version {seen} was there, and is gone")
        if newest > seen:
            commit = Commit.decode(bytes((await self._client.get(self._commit(newest))).content))
            if commit.version != newest:
                raise SegmentError(f"version {commit.version} lies where {newest} should")
            self.commit = commit
        return newest

    async def load(self, offset: int, length: int) -> bytes:
        """Bytes of the version; SegmentError outside of the segment, or if a page can't be had."""
        commit = self._opened(offset, length)
        if not length:
            return b""
        first, last = offset // commit.page_bytes, (offset + length - 1) // commit.page_bytes
        room = bytearray((last - first + 1) * commit.page_bytes)
        pages = memoryview(room)
        items = [
            Item(self._page(number, commit.pages[number]), pages[at : at + _page_length(commit, number)])
            for at, number in zip(range(0, len(room), commit.page_bytes), range(first, last + 1), strict=True)
            if commit.pages[number]
        ]
        if not all(await self._pool.load(items)):
            raise SegmentError(
                f"not all of bytes {offset} to {offset + length} of the segment could be loaded"
            )
        start = offset - first * commit.page_bytes
        return bytes(pages[start : start + length])

    async def _held(self, commits: Sequence[BlockRef]) -> int:
        """How many commit records are there, from the first one on; TransferError if that is not known."""
        answers = await self._client.present(commits, PROBE_S)
        for commit, is_there in zip(commits, answers, strict=True):
            if is_there is None:
                raise TransferTimeoutError(commit.key, "a home that may hold it does not answer")
            if not is_there:
                break
        return answers.index(False) if False in answers else len(answers)

    def _opened(self, offset: int, length: int) -> Commit:
        if self.commit is None:
            raise SegmentError(f"segment {self._name.decode()!r} has no version yet: refresh, or publish one")
        if offset < 0 or length < 0 or offset + length > self.commit.size:
            raise SegmentError(
                f"{length} bytes at {offset} are not within the {self.commit.size} of the segment"
            )
        return self.commit

    def _page(self, number: int, stamp: int) -> BlockRef:
        return BlockRef(self._seal.key(_PAGE, self._name, b"%d" % number, b"%d" % stamp))

    def _commit(self, version: int) -> BlockRef:
        return BlockRef(self._seal.key(_COMMIT, self._name, b"%d" % version))


class SegmentWriter(SegmentReader):
    """The one writer. `store` and `load` see what it has stored itself, published or not."""

    def __init__(
        self,
        pool: ObjectPool,
        client: BlockClient,
        seal: Seal,
        name: str,
        size: int,
        page_bytes: int = 16_384,
    ) -> None:
        """`size` and `page_bytes` are those of a new segment; one that exists has to agree with them."""
        super().__init__(pool, client, seal, name)
        if page_bytes < 1 or not 0 < -(-size // page_bytes) <= MAX_PAGES:
            raise SegmentError(f"{size} bytes in pages of {page_bytes}: 1 to {MAX_PAGES} pages are possible")
        self._size, self._page_bytes = size, page_bytes
        self._writer = secrets.token_bytes(WRITER_BYTES)
        self._dirty: dict[int, bytearray] = {}

    async def open(self) -> int:
        """Go on from the newest version there is; SegmentError if it has another size."""
        version = await self.refresh()
        if self.commit is None:
            pages = (0,) * -(-self._size // self._page_bytes)
            self.commit = Commit(self._writer, 0, self._size, self._page_bytes, pages)
        elif (self.commit.size, self.commit.page_bytes) != (self._size, self._page_bytes):
            there = f"{self.commit.size} bytes in pages of {self.commit.page_bytes}"
            raise SegmentError(f"segment {self._name.decode()!r} has {there}")
        return version

    async def store(self, offset: int, content: Buffer) -> None:
        """Change bytes; nobody else sees that before `publish`."""
        view = memoryview(content).cast("B")
        commit = self._opened(offset, len(view))
        done = 0
        while done < len(view):
            number, at = divmod(offset + done, commit.page_bytes)
            part = view[done : done + commit.page_bytes - at]
            page = await self._writable(number, whole=len(part) == _page_length(commit, number))
            page[at : at + len(part)] = part
            done += len(part)

    async def load(self, offset: int, length: int) -> bytes:
        """As a reader's, with what was stored and not published yet."""
        commit = self._opened(offset, length)
        loaded = bytearray(await super().load(offset, length))
        for number, page in self._dirty.items():
            start = number * commit.page_bytes
            begin, end = max(offset, start), min(offset + length, start + len(page))
            if begin < end:
                loaded[begin - offset : end - offset] = page[begin - start : end - start]
        return bytes(loaded)

    async def publish(self) -> int:
        """Make what was stored the next version, all at once; its number."""
        before = self._opened(0, 0)
        version = before.version + 1
        stamp = version << STAMP_BITS | secrets.randbits(
            STAMP_BITS
        )  # a new one each time: blocks are immutable
        pages = list(before.pages)
        items = []
        for number, page in self._dirty.items():
            pages[number] = stamp
            items.append(Item(self._page(number, stamp), page))
        if not all(await self._pool.store(items)):
            raise SegmentError("not all pages could be stored: nothing was published; publish again")
        commit = Commit(self._writer, version, before.size, before.page_bytes, tuple(pages))
        block = self._commit(version)
        await self._client.put(block, commit.encode())
        there = Commit.decode(bytes((await self._client.get(block)).content))  # the first to come stays
        if there.writer != self._writer:
            raise SecondWriterError(
                f"version {version} of segment {self._name.decode()!r} is another writer's"
            )
        self.commit = commit
        self._dirty.clear()
        return version

    async def _writable(self, number: int, whole: bool) -> bytearray:
        page = self._dirty.get(number)
        if page is None:
            commit = self._opened(0, 0)
            length = _page_length(commit, number)
            page = bytearray(length if whole else await super().load(number * commit.page_bytes, length))
            self._dirty[number] = page
        return page


def _page_length(commit: Commit, number: int) -> int:
    """The last page may be shorter."""
    return min(commit.page_bytes, commit.size - number * commit.page_bytes)
