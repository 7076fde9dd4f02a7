"""One process's client in the service of a node's other processes, and what those use instead of one.

guest > {"do": "hello", "settings": {...}}                      < {"ok": 0} | {"n": 0, "refused": why}
guest > {"n": 5, "do": "get", "block": [...], "room": bytes}    < {"n": 5, "fetched": [...]} + content
        {"n": 6, "do": "put", "block": [...], ...} + content    < {"n": 6}
        {"n": 7, "do": "present", "blocks": [[...]], ...}       < {"n": 7, "present": [true, false, null]}
        {"n": 5, "do": "cancel"}                                < any of them: {"n": 5, "error": [...]}
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, Final, Protocol

from hostlib.engine.frames import Channel, Frame
from hostlib.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    ConfigError,
    CorruptBlockError,
    OverloadedError,
    PutRefusedError,
    TransferError,
    TransferTimeoutError,
)
from hostlib.transfer import BlockRef, FetchedBlock, FetchTimes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.wire import Buffer


_ERRORS: Final[dict[str, type[TransferError]]] = {
    error.__name__: error
    for error in (
        BlockNotFoundError, BlockTooLongError, CorruptBlockError, OverloadedError, TransferTimeoutError
    )
}  # fmt: skip


class BlockClient(Protocol):
    """What engines need of `hostlib.client.Client`."""

    @property
    def suspects(self) -> list[str]: ...

    @property
    def is_answering(self) -> bool: ...

    async def get(self, block: BlockRef) -> FetchedBlock: ...

    async def get_into(self, block: BlockRef, buffer: memoryview) -> FetchedBlock: ...

    async def put(
        self, block: BlockRef, content: Buffer, *, replicas: int = 1, at_least: int | None = None
    ) -> None: ...

    async def present(self, blocks: Sequence[BlockRef], within_s: float) -> list[bool | None]: ...

    def close(self) -> None: ...


class Host:
    """Serves a client to whoever connects with the same settings."""

    def __init__(self, client: BlockClient, settings: dict[str, Any]) -> None:
        self._client, self._settings = client, settings
        self._guests: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One guest, until it leaves."""
        task = asyncio.current_task()
        assert task is not None
        self._guests.add(task)
        channel = Channel(reader, writer)
        under_way: dict[int, asyncio.Task[None]] = {}
        try:
            channel.check_user()
            if await self._welcome(channel):
                while (frame := await channel.read()) is not None:
                    self._take(channel, frame, under_way)
                    await channel.drain()
        except ConfigError:
            pass  # another user's process: it is told nothing
        finally:
            self._guests.discard(task)
            for one in under_way.values():
                one.cancel()
            channel.close()

    def close(self) -> None:
        """Send all guests away."""
        for guest in self._guests:
            guest.cancel()

    async def _welcome(self, channel: Channel) -> bool:
        frame = await channel.read()
        if frame is None:
            return False
        theirs = frame[0].get("settings", {})
        different = [
            f"{name} is {theirs.get(name)!r} here and {value!r} there"
            for name, value in self._settings.items()
            if theirs.get(name) != value
        ]
        channel.send({"n": 0, "refused": "; ".join(different)} if different else {"n": 0})
        await channel.drain()
        return not different

    def _take(self, channel: Channel, frame: Frame, under_way: dict[int, asyncio.Task[None]]) -> None:
        said, body = frame
        number = said["n"]
        if said["do"] == "cancel":
            if number in under_way:
                under_way[number].cancel()
            return
        under_way[number] = asyncio.ensure_future(self._answer(channel, said, body))
        under_way[number].add_done_callback(lambda _: under_way.pop(number))

    async def _answer(self, channel: Channel, said: dict[str, Any], body: bytes) -> None:
        number = said["n"]
        try:
            if said["do"] == "present":
                blocks = [_block(one) for one in said["blocks"]]
                present = await self._client.present(blocks, said["within_s"])
                channel.send({"n": number, "present": present})
            elif said["do"] == "put":
                await self._client.put(
                    _block(said["block"]), body, replicas=said["replicas"], at_least=said["at_least"]
                )
                channel.send({"n": number})
            else:
                block, room = _block(said["block"]), said["room"]
                fetched = await (
                    self._client.get(block)
                    if room is None
                    else self._client.get_into(block, memoryview(bytearray(room)))
                )
                rest = [fetched.fragments, fetched.pool_fragments, fetched.merged_fragments]
                channel.send({"n": number, "fetched": [*rest, list(fetched.times)]}, fetched.content)
        except TransferError as error:
            why = str(error).removeprefix(f"block {error.key.hex()}: ")
            reason = getattr(error, "reason", 0)
            channel.send({"n": number, "error": [type(error).__name__, error.key.hex(), why, reason]})
        except ValueError as error:
            channel.send({"n": number, "error": ["ValueError", "", str(error), 0]})
        await channel.drain()


class Guest:
    """A `BlockClient` in a process that uses another's."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._reading: asyncio.Task[None] | None = None
        self.suspects: list[str] = []
        self.is_answering = True
        self.is_over = False
        """Whether the other process is gone."""

    async def enter(self, settings: dict[str, Any]) -> None:
        """ConfigError if the other process reaches the pool in another way; EOFError if it went away."""
        self._channel.check_user()
        self._channel.send({"do": "hello", "settings": settings})
        answer = await self._channel.read()
        if answer is None:
            raise EOFError
        if "refused" in answer[0]:
            raise ConfigError(
                f"another process of this node has the pool open with other settings: {answer[0]['refused']}"
            )
        self._reading = asyncio.ensure_future(self._read())

    async def get(self, block: BlockRef) -> FetchedBlock:
        """As `Client.get`."""
        return self._fetched(block, await self._ask(block, {"do": "get", "room": None}))

    async def get_into(self, block: BlockRef, buffer: memoryview) -> FetchedBlock:
        """As `Client.get_into`."""
        frame = await self._ask(block, {"do": "get", "room": len(buffer)})
        length = len(frame[1])
        buffer[:length] = frame[1]
        return self._fetched(block, (frame[0], b""), buffer[:length])

    async def put(
        self, block: BlockRef, content: Buffer, *, replicas: int = 1, at_least: int | None = None
    ) -> None:
        """As `Client.put`."""
        await self._ask(block, {"do": "put", "replicas": replicas, "at_least": at_least}, content)

    async def present(self, blocks: Sequence[BlockRef], within_s: float) -> list[bool | None]:
        """As `Client.present`."""
        if not blocks:
            return []
        asked = {"do": "present", "blocks": [_named(one) for one in blocks], "within_s": within_s}
        said, _ = await self._ask(blocks[0], asked)
        return [None if one is None else bool(one) for one in said["present"]]

    def close(self) -> None:
        """Leave; whoever waits is cancelled."""
        self.is_over = True
        if self._reading is not None:
            self._reading.cancel()
        self._channel.close()
        for waiting in self._waiting.values():
            waiting.cancel()

    async def _ask(self, block: BlockRef, said: dict[str, Any], body: Buffer = b"") -> Frame:
        if self.is_over:
            raise TransferTimeoutError(block.key, "the process with this node's client has ended")
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._channel.send({"n": number, "block": _named(block), **said}, body)
            await self._channel.drain()
            frame: Frame = await answer
        except asyncio.CancelledError:
            self._channel.send({"n": number, "do": "cancel"})
            raise
        finally:
            self._waiting.pop(number, None)
        if "error" in frame[0]:
            raise _error(frame[0]["error"], block)
        return frame

    async def _read(self) -> None:
        while (frame := await self._channel.read()) is not None:
            answer = self._waiting.get(frame[0]["n"])
            if answer is not None and not answer.done():
                answer.set_result(frame)
        self.is_over = True
        self._channel.close()
        gone = ["TransferTimeoutError", "", "the process with this node's client has ended", 0]
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(({"error": gone}, b""))

    @staticmethod
    def _fetched(block: BlockRef, frame: Frame, content: memoryview | None = None) -> FetchedBlock:
        fragments, pooled, merged, times = frame[0]["fetched"]
        if content is None:
            content = memoryview(frame[1])
        return FetchedBlock(block.key, content, fragments, pooled, merged, FetchTimes(*times))


def _named(block: BlockRef) -> list[Any]:
    return [block.key.hex(), *block[1:]]


def _block(named: list[Any]) -> BlockRef:
    return BlockRef(bytes.fromhex(named[0]), *named[1:])


def _error(told: list[Any], block: BlockRef) -> Exception:
    name, key, why, reason = told
    if name == "ValueError":
        return ValueError(why)
    named = bytes.fromhex(key) or block.key
    if name == "PutRefusedError":
        return PutRefusedError(named, why, reason)
    return _ERRORS.get(name, TransferError)(named, why)
