"""Objects that are longer than a block of the pool can be: parts, each a block of its own, and a manifest.

    manifest    key of the object         magic, length, length of a part, number of parts, digest, MAC
    part        key of (object, digest, number of the part)

The manifest is stored when all parts are held, so a look-up asks about the manifest alone, and an object of
which a part was not stored is never seen. Parts are named by the digest of all bytes: parts of two writes
never mix. The MAC is the tenant's, over the object's key too: no content is taken for a manifest.

A part may be gone later. A reader then has a miss. A writer of the same bytes stores that part again; a
writer of other bytes can't replace the manifest, and puts one in the next of `SLOTS`, where readers look
next.
"""

from __future__ import annotations

import asyncio
import struct
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from hostlib.protocol.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    CorruptBlockError,
    TransferTimeoutError,
)
from hostlib.protocol.hints import HintOutcome
from hostlib.protocol.transfer import BlockRef, FetchedBlock
from hostlib.protocol.wire import Buffer, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from hostlib.engine.shared_client import BlockClient
    from hostlib.protocol.hints import Hint
    from hostlib.protocol.seal import Seal

MAX_OBJECT_BYTES: Final = 1 << 30
PART_BYTES: Final = 1 << 22
"""Small enough to spread an object over all homes, large enough for few keys."""
PARTS_AT_ONCE: Final = 8
"""Parts in flight of one object that is loaded, and of all objects that are stored."""
SLOTS: Final = 3
_PART: Final = b"weir part"
_MANIFEST: Final = b"weir manifest"
_MAGIC: Final = b"weirpart"
_BODY = struct.Struct(">8sQII32s")
_MAC_BYTES: Final = 16
MANIFEST_BYTES: Final = _BODY.size + _MAC_BYTES


class Manifest(NamedTuple):
    """Manifest of a large object: its length and its parts."""

    length: int
    part_bytes: int
    """Length of each part but the last, which may be shorter."""
    digest: bytes
    """SHA-256 of the parts' SHA-256s in order."""

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return -(-self.length // self.part_bytes)

    def encode(self, seal: Seal, key: bytes) -> bytes:
        """Return the bytes that are stored for the object of this key."""
        body = _BODY.pack(_MAGIC, self.length, self.part_bytes, self.parts, self.digest)
        return body + seal.key(_MANIFEST, key, body)

    @classmethod
    def decode(cls, seal: Seal, key: bytes, content: Buffer) -> Manifest | None:
        """Return the manifest that is stored for this key; None if this is anything else."""
        raw = bytes(content) if len(content) == MANIFEST_BYTES else b""
        if not raw or raw[_BODY.size :] != seal.key(_MANIFEST, key, raw[: _BODY.size]):
            return None
        magic, length, part_bytes, parts, digest = _BODY.unpack_from(raw)
        manifest = cls(length, part_bytes, digest)
        if magic != _MAGIC or not 0 < length <= MAX_OBJECT_BYTES or not part_bytes or manifest.parts != parts:
            return None
        return manifest

    def cut(self, content: memoryview) -> list[memoryview]:
        """Return the parts of an object's bytes."""
        return [content[at : at + self.part_bytes] for at in range(0, self.length, self.part_bytes)]


class LargeObjects:
    """Stores and loads them through a client of the pool."""

    def __init__(self, client: BlockClient, seal: Seal, replicas: int, part_timeout_s: float) -> None:
        """Store and load by `client`; `part_timeout_s` is how long storing one part may take."""
        self._client, self._seal, self._replicas = client, seal, replicas
        self._part_timeout_s = part_timeout_s
        self._turns = asyncio.Semaphore(PARTS_AT_ONCE)
        """Of all stores together, so that a part's time does not pass while many others are sent."""

    def manifest_of(self, block: BlockRef, content: Buffer) -> Manifest | None:
        """Return the manifest that was loaded in place of an object; None if it is an object's content."""
        return Manifest.decode(self._seal, block.key, content)

    async def store(self, block: BlockRef, content: memoryview) -> None:
        """Return when the object is held, by whoever it was stored. Raises as `Client.put`, and
        TimeoutError."""
        digest = b""
        for slot in range(SLOTS):
            there = await self._manifest(block, slot)
            if there is not None and there.length == len(content) and await self._is_whole(block, there):
                return
            digest = digest or await _digest(content)
            manifest = Manifest(len(content), PART_BYTES, digest)
            if there in (None, manifest):
                await self._store_parts(block, manifest, content)
                encoded = manifest.encode(self._seal, self._slot(block, slot).key)
                await self._put(self._slot(block, slot), encoded)
                return
        raise BlockNotFoundError(block.key, "other writes of the object are there, and incomplete")

    async def load(self, block: BlockRef, buffer: memoryview) -> FetchedBlock:
        """Fetch an object of the buffer's length; its `content` is the buffer.

        Raises BlockNotFoundError if a part is missing, else as `Client.get_into`. What the buffer holds then
        is undefined.
        """
        for slot in range(SLOTS):
            manifest = await self._manifest(block, slot)
            if manifest is None:
                break
            if manifest.length != len(buffer):
                continue
            try:
                return await self._load_parts(block, manifest, buffer)
            except BlockNotFoundError:
                continue
        raise BlockNotFoundError(block.key, "none of its homes holds all of it")

    async def delete(self, block: BlockRef) -> bool:
        """Delete an object, whatever its length: its manifests before its parts.

        Returns whether any of it was there. Raises as `Client.delete`.
        """
        there = [False] * SLOTS

        async def forget(slot: int) -> None:
            try:
                manifest = await self._manifest(block, slot)
            except (BlockTooLongError, CorruptBlockError):  # an object without parts, or nobody's
                manifest = None
            there[slot] = await self._client.delete(self._slot(block, slot))
            parts = self._parts(block, manifest) if manifest is not None else []
            await _each(len(parts), lambda number: self._delete(parts[number]))

        await _each(SLOTS, forget)  # whatever is left of those before it
        return any(there)

    async def hint(self, block: BlockRef, hint: Hint, seconds: int = 0) -> HintOutcome:
        """Hint at an object of parts: its manifests and its parts. Returns the worst outcome of those
        that are there.

        Raises as `Client.get_into` for a manifest that can't be read.
        """
        outcomes = []
        for slot in range(SLOTS):
            manifest = await self._manifest(block, slot)
            if manifest is None:
                break
            wanted = [self._slot(block, slot), *self._parts(block, manifest)]
            outcomes += await asyncio.gather(*(self._client.hint(one, hint, seconds) for one in wanted))
        held = [outcome for outcome in outcomes if outcome is not HintOutcome.NOT_FOUND]
        return min(held, default=HintOutcome.NOT_FOUND)

    async def _delete(self, block: BlockRef) -> None:
        await self._client.delete(block)

    async def _manifest(self, block: BlockRef, slot: int) -> Manifest | None:
        named = self._slot(block, slot)
        try:
            fetched = await self._client.get_into(named, memoryview(bytearray(MANIFEST_BYTES)))
        except BlockNotFoundError:
            return None
        manifest = Manifest.decode(self._seal, named.key, fetched.content)
        if manifest is None:
            raise CorruptBlockError(named.key, "what is stored there is no manifest of a large object")
        return manifest

    async def _is_whole(self, block: BlockRef, manifest: Manifest) -> bool:
        """Return whether all parts are there."""
        present = await self._client.present(self._parts(block, manifest), self._part_timeout_s)
        if None in present:
            raise TransferTimeoutError(block.key, "a home that may hold a part does not answer")
        return all(present)

    async def _store_parts(self, block: BlockRef, manifest: Manifest, content: memoryview) -> None:
        views = manifest.cut(content)
        parts = self._parts(block, manifest)
        await _each(len(parts), lambda number: self._put(parts[number], views[number]))

    async def _load_parts(self, block: BlockRef, manifest: Manifest, buffer: memoryview) -> FetchedBlock:
        views = manifest.cut(buffer)
        parts = self._parts(block, manifest)
        arrived: list[FetchedBlock] = []
        digests = [b""] * len(parts)

        async def load(number: int) -> None:
            fetched = await self._client.get_into(parts[number], views[number])
            if len(fetched.content) != len(views[number]):
                raise CorruptBlockError(parts[number].key, "its length is not the one that its manifest says")
            arrived.append(fetched)
            digests[number] = await asyncio.to_thread(_sha256, views[number])

        await _each(len(parts), load)
        if _sha256(b"".join(digests)) != manifest.digest:
            raise CorruptBlockError(block.key, "its digest is not the one that its manifest says")
        return FetchedBlock(
            block.key,
            buffer,
            sum(one.fragments for one in arrived),
            sum(one.pool_fragments for one in arrived),
            sum(one.merged_fragments for one in arrived),
            max((one.times for one in arrived), key=lambda times: times.done_s),
        )

    async def _put(self, block: BlockRef, content: Buffer) -> None:
        async with self._turns, asyncio.timeout(self._part_timeout_s):
            await self._client.put(block, content, replicas=self._replicas, at_least=1)

    def _slot(self, block: BlockRef, slot: int) -> BlockRef:
        """Return the block of a manifest; the first one is stored under the object's own key."""
        return block if not slot else block._replace(key=self._seal.key(_MANIFEST, block.key, b"%d" % slot))

    def _parts(self, block: BlockRef, manifest: Manifest) -> list[BlockRef]:
        place = block._replace(parent=fingerprint(block.key), recompute_ms=0)
        numbers = range(manifest.parts)
        keys = (self._seal.key(_PART, block.key, manifest.digest, b"%d" % number) for number in numbers)
        return [place._replace(key=key) for key in keys]


async def _digest(content: memoryview) -> bytes:
    """Return a `Manifest`'s digest; other tasks go on meanwhile."""
    parts = Manifest(len(content), PART_BYTES, b"").cut(content)
    digests = [b""] * len(parts)

    async def digest(number: int) -> None:
        digests[number] = await asyncio.to_thread(_sha256, parts[number])

    await _each(len(parts), digest)
    return _sha256(b"".join(digests))


def _sha256(content: Buffer) -> bytes:
    return sha256(content).digest()


async def _each(count: int, one: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """Run `one(number)` for each number, `PARTS_AT_ONCE` at a time. The first failure ends all of them."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await one(number)

    workers = [asyncio.ensure_future(work()) for _ in range(min(count, PARTS_AT_ONCE))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
