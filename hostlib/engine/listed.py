"""Lists of a tenant's objects in the pool, by the name of a model or of a key space.

Storage nodes know keys only, and list them to one another alone. So engines write down what they store, in
the pool itself, under the tenant's secret:

    name     key of the number of its slot      the name, in UTF-8
    page     key of (name, number of the page)  16 random bytes, then for each object: key, length u32

A slot and a page belong to whoever wrote them first. An object is in a page seconds after it was stored. A
process that is killed does not write down its last objects, and pages can leave the pool as any block can. So
a list may name objects that have left the pool, and may lack a few that are there.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from hostlib.engine.large import LargeObjects
from hostlib.protocol.errors import BlockNotFoundError, TransferError, TransferTimeoutError
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import KEY_BYTES, MAX_BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from hostlib.engine.shared_client import BlockClient
    from hostlib.protocol.hints import Hint
    from hostlib.protocol.seal import Seal

MAX_NAMES: Final = 64
MAX_NAME_BYTES: Final = 200
MAX_PAGES: Final = 65_536
"""Most pages of one name."""
PAGE_ENTRIES: Final = 1024
MISSING_PAGES: Final = 16
"""Number of pages in a row that are not there, which end a list."""
FLUSH_S: Final = 5.0
"""Seconds that an object which was stored waits to be written down."""
MAX_WAITING: Final = 65_536
"""Objects that wait for that; more are not written down."""
DELETES_AT_ONCE: Final = 64
HINTS_AT_ONCE: Final = 64
ASK_S: Final = 10.0
_NAME: Final = b"weir listed name"
_PAGE: Final = b"weir listed page"
_ENTRY = struct.Struct(">16sI")
_NONCE_BYTES: Final = 16


class Listed(NamedTuple):
    """An object that was stored."""

    key: bytes
    length: int
    """Length in bytes."""


class Page(NamedTuple):
    """Content of one write of a list."""

    block: BlockRef
    objects: list[Listed]


class Lists:
    """The lists of one tenant, through a client of the pool."""

    def __init__(self, client: BlockClient, seal: Seal, replicas: int = 1) -> None:
        self._client, self._seal, self._replicas = client, seal, replicas
        self._large = LargeObjects(client, seal, replicas, ASK_S)
        self._slots: dict[str, int] = {}
        self._next_page: dict[str, int] = {}

    async def names(self) -> list[str]:
        """Return all names, in order. Raises a TransferError if the pool does not answer."""
        slots = [self._slot(number) for number in range(MAX_NAMES)]
        there = await self._client.present(slots, ASK_S)
        if None in there:
            raise TransferTimeoutError(slots[0].key, "a storage node that may hold a name does not answer")
        found = [await self._read(slot) for slot, one in zip(slots, there, strict=True) if one]
        return sorted({name for one in found if one is not None and (name := _name(one))})

    async def pages(self, name: str) -> AsyncIterator[Page]:
        """Yield the pages of a name, in the order in which they were written."""
        missing, number = 0, 0
        while missing < MISSING_PAGES and number < MAX_PAGES:
            block = self._page(name, number)
            content = await self._read(block)
            missing = 0 if content is not None else missing + 1
            number += 1
            if content is not None:
                yield Page(block, _objects(content))

    async def add(self, name: str, objects: Sequence[Listed]) -> None:
        """Write a page of at most PAGE_ENTRIES objects. ValueError for a name that can't be."""
        if not 0 < len(name.encode()) <= MAX_NAME_BYTES:
            raise ValueError(f"a name has 1 to {MAX_NAME_BYTES} bytes")
        await self._register(name)
        content = secrets.token_bytes(_NONCE_BYTES) + b"".join(_ENTRY.pack(*one) for one in objects)
        number = self._next_page.get(name, 0)
        while number < MAX_PAGES and not await self._claim(self._page(name, number), content):
            number += 1
        self._next_page[name] = number + 1

    async def clear(self, name: str, progress: Callable[[int], None] = lambda deleted: None) -> int:
        """Delete all objects of a name, and the name; return how many were there.

        Raises a TransferError where that could not be done; what was not deleted is still in the list then.
        """
        turns, deleted, done = asyncio.Semaphore(DELETES_AT_ONCE), 0, 0

        async def delete(one: Listed) -> None:
            nonlocal deleted, done
            async with turns:
                is_large = one.length > MAX_BLOCK_BYTES
                there = await (self._large if is_large else self._client).delete(BlockRef(one.key))
                deleted += there
                done += 1
                progress(done)

        async for page in self.pages(name):
            results = await asyncio.gather(*(delete(one) for one in page.objects), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
            await self._client.delete(page.block)
        for number in range(MAX_NAMES):
            if await self._read(self._slot(number)) == name.encode():
                await self._client.delete(self._slot(number))
        self._slots.pop(name, None)
        self._next_page.pop(name, None)
        return deleted

    async def hint(self, name: str, hint: Hint, seconds: int = 0) -> Counter[int]:
        """Hint at all objects of a name; how many of them had each `HintOutcome`.

        Raises TransferTimeoutError if the pool can't be reached at all.
        """
        turns, outcomes = asyncio.Semaphore(HINTS_AT_ONCE), Counter[int]()

        async def give(one: Listed) -> None:
            async with turns:
                client = self._large if one.length > MAX_BLOCK_BYTES else self._client
                outcomes[await client.hint(BlockRef(one.key), hint, seconds)] += 1

        async for page in self.pages(name):
            await asyncio.gather(*(give(one) for one in page.objects))
        return outcomes

    async def _register(self, name: str) -> None:
        if name in self._slots:
            return
        for number in range(MAX_NAMES):
            if await self._claim(self._slot(number), name.encode()):
                self._slots[name] = number
                return
        raise ValueError(f"there are {MAX_NAMES} names already: clear one")

    async def _claim(self, block: BlockRef, content: bytes) -> bool:
        """Write a block that nobody has written; whether it has this content then."""
        there = await self._read(block)
        if there is None:
            await self._client.put(block, content, replicas=self._replicas, at_least=1)
            there = await self._read(block)
        return there == content

    async def _read(self, block: BlockRef) -> bytes | None:
        try:
            return bytes((await self._client.get(block)).content)
        except BlockNotFoundError:
            return None

    def _slot(self, number: int) -> BlockRef:
        return BlockRef(self._seal.key(_NAME, b"%d" % number))

    def _page(self, name: str, number: int) -> BlockRef:
        return BlockRef(self._seal.key(_PAGE, name.encode(), b"%d" % number))


class Notes:
    """Objects that one process has stored and not written down yet. Use from one event loop."""

    def __init__(self, lists: Lists) -> None:
        self.left_out = 0
        """Objects that were stored and are in no list."""
        self._lists = lists
        self._waiting: dict[str, dict[bytes, int]] = {}
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, name: str, key: bytes, length: int) -> None:
        """Note that an object was stored."""
        if self._count >= MAX_WAITING:
            self.left_out += 1
            return
        waiting = self._waiting.setdefault(name, {})
        self._count += key not in waiting
        waiting[key] = length
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._flush_later())

    async def flush(self) -> None:
        """Write down what waits; what can't be is left out, and counted."""
        waiting, self._waiting, self._count = self._waiting, {}, 0
        for name, objects in waiting.items():
            listed = [Listed(key, length) for key, length in objects.items()]
            for at in range(0, len(listed), PAGE_ENTRIES):
                try:
                    await self._lists.add(name, listed[at : at + PAGE_ENTRIES])
                except (TransferError, ValueError):
                    self.left_out += len(listed[at : at + PAGE_ENTRIES])

    async def _flush_later(self) -> None:
        try:
            while self._count:
                await asyncio.sleep(FLUSH_S)
                await self.flush()
        finally:
            self._task = None


def _name(content: bytes) -> str:
    """Return the name in a slot; empty for what is none."""
    try:
        return content.decode() if len(content) <= MAX_NAME_BYTES else ""
    except UnicodeDecodeError:
        return ""


def _objects(content: bytes) -> list[Listed]:
    """Return the objects of a page; none if it is no page."""
    body = content[_NONCE_BYTES:]
    if len(content) < _NONCE_BYTES or len(body) % _ENTRY.size or len(body) > PAGE_ENTRIES * _ENTRY.size:
        return []
    return [Listed(key, length) for key, length in _ENTRY.iter_unpack(body) if len(key) == KEY_BYTES]
