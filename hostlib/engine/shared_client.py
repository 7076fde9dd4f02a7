"""One process's client in the service of a node's other processes, and what those use instead of one.

guest > {"do": "hello", "settings": {...}}                      < {"n": 0} | {"n": 0, "refused": why}
guest > {"n": 5, "do": "get", "block": [...], "room": bytes}    < {"n": 5, "fetched": [...]} + content
        {"n": 6, "do": "put", "block": [...], ...} + content    < {"n": 6}
        {"n": 8, "do": "delete", "block": [...]}                < {"n": 8, "deleted": whether it was there}
        {"n": 9, "do": "hint", "block": [...], ...}             < {"n": 9, "outcome": what became of it}
        {"n": 7, "do": "present", "blocks": [[...]], ...}       < {"n": 7, "present": [true, false, null]}
        {"n": 5, "do": "cancel"}                                < any of them: {"n": 5, "error": [...]}

Each answer also says which storage nodes do not answer: {"silent": [address, ...], "answering": whether any
does}. What a guest sends is taken for hostile: whatever is no request ends its connection, and what it has
under way is bounded.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from hostlib.engine.frames import Channel, Frame
from hostlib.engine.requests import (
    MAX_QUESTIONS,
    MAX_WITHIN_S,
    Cancel,
    Delete,
    Hinted,
    Present,
    Put,
    Request,
    block_fields,
    parse_addresses,
    parse_request,
)
from hostlib.engine.room import Room
from hostlib.protocol.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    ConfigError,
    CorruptBlockError,
    OverloadedError,
    PutRefusedError,
    TransferError,
    TransferTimeoutError,
)
from hostlib.protocol.hints import HintOutcome
from hostlib.protocol.members import MAX_NODES
from hostlib.protocol.transfer import FetchedBlock, FetchTimes
from hostlib.protocol.wire import MAX_BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlib.protocol.hints import Hint
    from hostlib.protocol.transfer import BlockRef
    from hostlib.protocol.wire import Buffer

GONE: Final = "the process with this node's client has ended"
GREETING_S = 10.0
"""Seconds that a process which connects may take to say which settings it has."""
MAX_GUESTS = 64
MAX_REQUESTS = 2048
"""Number of requests that one guest may have under way; more are refused."""
MAX_GUEST_BYTES = 128 << 20
"""Bytes of blocks that one guest may have under way; more are refused."""
OWN_BYTES = MAX_GUEST_BYTES // 2
"""Bytes that a guest of this program has under way at most; what comes on top waits."""

_ERRORS: Final[dict[str, type[TransferError]]] = {
    error.__name__: error
    for error in (
        BlockNotFoundError, BlockTooLongError, CorruptBlockError, OverloadedError, TransferTimeoutError
    )
}  # fmt: skip


class BlockClient(Protocol):
    """Interface of `hostlib.client.client.Client` that engines use."""

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

    async def delete(self, block: BlockRef) -> bool: ...

    async def hint(self, block: BlockRef, hint: Hint, seconds: int = 0) -> HintOutcome: ...

    def close(self) -> None: ...


class Host:
    """Serves a client to whoever connects with the same settings."""

    def __init__(self, client: BlockClient, settings: dict[str, Any]) -> None:
        self._client, self._settings = client, settings
        self._guests: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one guest, until it leaves, or sends what is no request."""
        channel = Channel(reader, writer)
        task = asyncio.current_task()
        if task is None or len(self._guests) >= MAX_GUESTS:
            channel.close()
            return
        self._guests.add(task)
        visit = _Visit(self._client, channel)
        try:
            channel.check_user()
            async with asyncio.timeout(GREETING_S):
                welcome = await self._welcome(channel)
            while welcome and (frame := await channel.read()) is not None:
                visit.take(frame)
                await channel.drain()
        except (ConfigError, TimeoutError, ValueError):
            pass  # another user's process, a silent one, or one that sends no requests: it is told nothing
        finally:
            self._guests.discard(task)
            visit.end()
            channel.close()

    def close(self) -> None:
        """Send all guests away."""
        for guest in self._guests:
            guest.cancel()

    async def _welcome(self, channel: Channel) -> bool:
        frame = await channel.read()
        theirs = frame[0].get("settings") if frame is not None else None
        if not isinstance(theirs, dict):
            return False
        different = [
            f"{name} is {theirs.get(name)!r} here and {value!r} there"
            for name, value in self._settings.items()
            if theirs.get(name) != value
        ]
        channel.send({"n": 0, "refused": "; ".join(different)} if different else {"n": 0})
        await channel.drain()
        return not different


class _Visit:
    """Requests of one guest that are under way."""

    def __init__(self, client: BlockClient, channel: Channel) -> None:
        self._client, self._channel = client, channel
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._bytes = 0

    def take(self, frame: Frame) -> None:
        """Begin what a guest asks for; ValueError if it is no request."""
        request = parse_request(frame)
        if isinstance(request, Cancel):
            if request.number in self._under_way:
                self._under_way[request.number].cancel()
            return
        number, size = request.number, request.size
        if number in self._under_way:
            raise ValueError(f"request {number} is under way already")
        if len(self._under_way) >= MAX_REQUESTS or self._bytes + size > MAX_GUEST_BYTES:
            self._say(number, {"error": ["OverloadedError", "", "too much is under way already", 0]})
            return
        self._bytes += size

        def ended(_: asyncio.Task[None]) -> None:
            self._bytes -= size
            del self._under_way[number]

        self._under_way[number] = asyncio.ensure_future(self._answer(request))
        self._under_way[number].add_done_callback(ended)

    def end(self) -> None:
        """Give up all that the guest asked for."""
        for one in self._under_way.values():
            one.cancel()

    async def _answer(self, request: Request) -> None:
        try:
            said, content = await self._outcome(request)
        except TransferError as error:
            why = str(error).removeprefix(f"block {error.key.hex()}: ")
            reason = getattr(error, "reason", 0)
            said, content = {"error": [type(error).__name__, error.key.hex(), why, reason]}, b""
        except ValueError as error:
            said, content = {"error": ["ValueError", "", str(error), 0]}, b""
        self._say(request.number, said, content)
        await self._channel.drain()

    async def _outcome(self, request: Request) -> tuple[dict[str, Any], Buffer]:
        """Return the answer to a request; a TransferError or ValueError says why there is none."""
        client = self._client
        if isinstance(request, Present):
            return {"present": await client.present(request.blocks, request.within_s)}, b""
        if isinstance(request, Delete):
            return {"deleted": await client.delete(request.block)}, b""
        if isinstance(request, Hinted):
            return {"outcome": int(await client.hint(request.block, request.hint, request.seconds))}, b""
        if isinstance(request, Put):
            await client.put(
                request.block, request.content, replicas=request.replicas, at_least=request.at_least
            )
            return {}, b""
        if request.room is None:
            fetched = await client.get(request.block)
        else:
            fetched = await client.get_into(request.block, memoryview(bytearray(request.room)))
        rest = [fetched.fragments, fetched.pool_fragments, fetched.merged_fragments]
        return {"fetched": [*rest, list(fetched.times)]}, fetched.content

    def _say(self, number: int, said: dict[str, Any], content: Buffer = b"") -> None:
        suspects = self._client.suspects
        health = {"silent": suspects, "answering": self._client.is_answering} if suspects else {}
        self._channel.send({"n": number, **said, **health}, content)


class Guest:
    """A `BlockClient` in a process that uses another's."""

    def __init__(self, channel: Channel, on_answer: Callable[[], None] = lambda: None) -> None:
        """Make a guest; `on_answer` is called whenever the other process says anything."""
        self.suspects: list[str] = []
        self.is_answering = True
        self.is_over = False
        """Whether the other process is gone."""
        self.heard_s = 0.0
        """When the other process said anything last; of the monotonic clock."""
        self._channel, self._on_answer = channel, on_answer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self._room = Room(OWN_BYTES)

    async def enter(self, settings: dict[str, Any]) -> None:
        """Greet the other process. Raises ConfigError if it reaches the pool in another way, EOFError if it
        went away."""
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
        """Get a block as `Client.get` does."""
        frame = await self._get(block, None)
        return self._fetched(block, frame, memoryview(frame[1]))

    async def get_into(self, block: BlockRef, buffer: memoryview) -> FetchedBlock:
        """Do what `Client.get_into` does."""
        frame = await self._get(block, len(buffer))
        length = len(frame[1])
        if length > len(buffer):
            raise BlockTooLongError(block.key, f"{length} bytes do not fit a buffer of {len(buffer)}")
        buffer[:length] = frame[1]
        return self._fetched(block, frame, buffer[:length])

    async def put(
        self, block: BlockRef, content: Buffer, *, replicas: int = 1, at_least: int | None = None
    ) -> None:
        """Do what `Client.put` does."""
        said = {"do": "put", "block": block_fields(block), "replicas": replicas, "at_least": at_least}
        await self._ask(block, said, memoryview(content).nbytes, content)

    async def delete(self, block: BlockRef) -> bool:
        """Do what `Client.delete` does."""
        said = {"do": "delete", "block": block_fields(block)}
        return (await self._ask(block, said))[0].get("deleted") is True

    async def hint(self, block: BlockRef, hint: Hint, seconds: int = 0) -> HintOutcome:
        """Do what `Client.hint` does."""
        said = {"do": "hint", "block": block_fields(block), "hint": int(hint), "seconds": seconds}
        outcome = (await self._ask(block, said))[0].get("outcome")
        return HintOutcome(outcome) if outcome in set(HintOutcome) else HintOutcome.NO_ANSWER

    async def present(self, blocks: Sequence[BlockRef], within_s: float) -> list[bool | None]:
        """Do what `Client.present` does."""
        answers: list[bool | None] = []
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        for start in range(0, len(blocks), MAX_QUESTIONS):
            some = blocks[start : start + MAX_QUESTIONS]
            left_s = min(MAX_WITHIN_S, max(0.0, until_s - loop.time()))
            said = {"do": "present", "blocks": [block_fields(one) for one in some], "within_s": left_s}
            present = (await self._ask(some[0], said))[0].get("present")
            if not isinstance(present, list) or len(present) != len(some):
                self._end()
                raise TransferTimeoutError(some[0].key, GONE)
            answers += [None if one is None else one is True for one in present]
        return answers

    def close(self) -> None:
        """Leave; whoever waits is cancelled."""
        self.is_over = True
        if self._reading is not None:
            self._reading.cancel()
        self._channel.close()
        for waiting in self._waiting.values():
            waiting.cancel()

    async def _get(self, block: BlockRef, room: int | None) -> Frame:
        size = MAX_BLOCK_BYTES if room is None else room
        return await self._ask(block, {"do": "get", "block": block_fields(block), "room": room}, size)

    async def _ask(self, block: BlockRef, said: dict[str, Any], size: int = 0, body: Buffer = b"") -> Frame:
        """Return the answer; `size` is what the request and its answer hold in memory, in bytes."""
        async with self._room.held(size):
            if self.is_over:
                raise TransferTimeoutError(block.key, GONE)
            number = next(self._numbers)
            answer = self._waiting[number] = asyncio.get_running_loop().create_future()
            try:
                async with self._sending:  # one at a time, so that no more than one waits in memory
                    await self._channel.drain()
                    self._channel.send({"n": number, **said}, body)
                frame: Frame = await answer
            except asyncio.CancelledError:
                if not self.is_over:
                    self._channel.send({"n": number, "do": "cancel"})
                raise
            finally:
                del self._waiting[number]
        if "error" in frame[0]:
            raise _error(frame[0]["error"], block)
        return frame

    async def _read(self) -> None:
        while (frame := await self._channel.read()) is not None:
            self.heard_s = time.monotonic()
            self._on_answer()
            said, _ = frame
            try:
                self.suspects = parse_addresses(said.get("silent", []), MAX_NODES)
            except ValueError:
                break
            self.is_answering = said.get("answering", True) is True
            answer = self._waiting.get(said["n"]) if type(said.get("n")) is int else None
            if answer is not None and not answer.done():
                answer.set_result(frame)
        self._end()

    def _end(self) -> None:
        """End: the other process is gone, or sends what can't be."""
        self.is_over = True
        self._channel.close()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(({"error": ["TransferTimeoutError", "", GONE, 0]}, b""))

    def _fetched(self, block: BlockRef, frame: Frame, content: memoryview) -> FetchedBlock:
        try:
            fragments, pooled, merged, (wanted, sent, probed, body, done, home) = frame[0]["fetched"]
            times = FetchTimes(float(wanted), float(sent), float(probed), float(body), float(done), str(home))
            return FetchedBlock(block.key, content, int(fragments), int(pooled), int(merged), times)
        except (KeyError, TypeError, ValueError):
            self._end()
            raise TransferTimeoutError(block.key, GONE) from None


def _error(told: Any, block: BlockRef) -> Exception:
    try:
        name, key, why, reason = told
        named = bytes.fromhex(key) or block.key
    except (TypeError, ValueError):
        name, named, why, reason = "TransferTimeoutError", block.key, GONE, 0
    if name == "ValueError":
        return ValueError(why)
    if name == "PutRefusedError":
        return PutRefusedError(named, str(why), reason if type(reason) is int else 0)
    return _ERRORS.get(str(name), TransferError)(named, str(why))
