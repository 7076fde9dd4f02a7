"""Node that loads the network, and checks what it reads with digests of what it wrote.

    python -m experiments.faults.load CONFIG.json

    stdout  < {"event": "ready"}                            its first blocks are written
    stdin   > {"play": SECONDS, "at_s": CLOCK_MONOTONIC}    load, at a fixed rate whatever is slow
    stdout  < {"event": "played"}                           all operations have ended and are in `records`
    stdin   > {"check": true}                               read back every block that was acknowledged
    stdout  < {"event": "checked", "blocks": N, "lost": [...], "wrong": N}
    stdout  < {"event": "members", "states": [...]}         whenever the list of storage nodes changes
    stdin   > stop                                          or its end

A PUT is durable at R homes. Its content follows from its key, which no other node writes. A GET is of a block
that the node wrote, or of a hot block, which all nodes have written and read.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b, shake_128
from pathlib import Path
from typing import Any

from commands.child import commands, main, say
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.process.config import HostConfig, check_address, check_positive
from hostlib.protocol.errors import BlockNotFoundError, PutRefusedError, TransferError
from hostlib.protocol.members import Members, State
from hostlib.protocol.seal import Seal
from hostlib.protocol.tenancy import seal_of
from hostlib.protocol.transfer import BlockRef
from hostlib.transport.endpoint import UdpEndpoint

RIGHT, WRONG, MISSING, REFUSED, FAILED, SKIPPED = "right", "wrong", "missing", "refused", "failed", "skipped"
MAX_ACTIVE = 512
"""Most operations of a node at once; more are recorded as skipped, which counts as failed."""
PUT_SHARE = 0.3
HOT_SHARE = 0.5
"""Share of reads that are of hot blocks."""
CHECK_TRIES = 3
CHECK_AT_ONCE = 16
POLL_S = 0.05
POLLS_PER_QUERY = 10


@dataclass(frozen=True, kw_only=True)
class LoadConfig(HostConfig):
    """Configuration of a loading node, as its file has it."""

    homes: list[str]
    replicas: int
    controller: str
    tenant: int
    secret: str
    records: str
    """File for the records, one for each operation."""
    seed: int
    block_bytes: int
    rate_per_s: float
    hot_blocks: int = 8
    own_blocks: int = 0
    """Number of keys that are put again and again with the same content; 0: each PUT is of a new block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for home in self.homes:
            check_address("homes", home)
        check_positive(block_bytes=self.block_bytes, rate_per_s=self.rate_per_s)


@dataclass(frozen=True, slots=True)
class Operation:
    """GET or PUT with its outcome. Times are CLOCK_MONOTONIC; it starts at the time at which it was due."""

    kind: str
    start_s: float
    end_s: float
    outcome: str
    detail: str = ""


@dataclass
class Load:
    """Node at work. `digests` has the digests of all blocks that were acknowledged, by key."""

    config: LoadConfig
    client: Client
    operations: list[Operation] = field(default_factory=list)
    digests: dict[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.config.seed} {self.config.address}")
        self._seal = seal_of(self.config.tenant, self.config.secret)
        self._hot = [hot_key(self._seal, at) for at in range(self.config.hot_blocks)]
        self._active: set[asyncio.Task[None]] = set()
        self._puts = 0

    async def prepare(self) -> None:
        """Write the hot blocks, and one block of the node's own; raises TransferError."""
        for key in self._hot:
            content = shake_128(key).digest(self.config.block_bytes)
            await self.client.put(BlockRef(key), content, durable=True, replicas=self.config.replicas)
            self.digests[key] = _digest(content)
        if (result := await self._put()) != (RIGHT, ""):
            raise TransferError(self._hot[0], f"the first block could not be written: {result}")

    async def play(self, at_s: float, seconds: float) -> None:
        """Begin each operation when it is due, however many others wait; write records when all ended."""
        loop = asyncio.get_running_loop()
        self.operations.clear()
        count = round(seconds * self.config.rate_per_s)
        for number in range(count):
            due_s = at_s + number / self.config.rate_per_s
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            kind, work = self._next()
            if len(self._active) >= MAX_ACTIVE:
                self.operations.append(Operation(kind, due_s, loop.time(), SKIPPED))
                continue
            task = asyncio.create_task(self._record(kind, due_s, work))
            self._active.add(task)
            task.add_done_callback(self._active.discard)
        while self._active:
            await asyncio.wait(self._active)
        lines = (json.dumps(asdict(operation)) for operation in self.operations)
        Path(self.config.records).write_text("\n".join(lines) + "\n")

    async def check(self) -> dict[str, Any]:
        """Read back every block that was acknowledged; return how many there are, and those wrong or lost."""
        semaphore = asyncio.Semaphore(CHECK_AT_ONCE)

        async def read(key: bytes) -> tuple[str, str]:
            async with semaphore:
                for _ in range(CHECK_TRIES):
                    result = await self._get(key)
                    if result[0] in (RIGHT, WRONG):
                        break
                return result

        results = await asyncio.gather(*map(read, list(self.digests)))
        return {
            "blocks": len(results),
            "wrong": sum(outcome == WRONG for outcome, _ in results),
            "lost": [detail for outcome, detail in results if outcome not in (RIGHT, WRONG)],
        }

    def _next(self) -> tuple[str, Callable[[], Awaitable[tuple[str, str]]]]:
        if self._random.random() < PUT_SHARE:
            return "put", self._put
        keys = self._hot if self._random.random() < HOT_SHARE else list(self.digests)
        key = self._random.choice(keys)
        return "get", lambda: self._get(key)

    async def _record(self, kind: str, due_s: float, work: Callable[[], Awaitable[tuple[str, str]]]) -> None:
        outcome, detail = await work()
        end_s = asyncio.get_running_loop().time()
        self.operations.append(Operation(kind, due_s, end_s, outcome, detail))

    async def _put(self) -> tuple[str, str]:
        self._puts += 1
        number = self._puts % (self.config.own_blocks or self._puts + 1)
        key = self._seal.key(f"{self.config.seed} {self.config.address} {number}".encode())
        content = shake_128(key).digest(self.config.block_bytes)
        try:
            await self.client.put(BlockRef(key), content, durable=True, replicas=self.config.replicas)
        except PutRefusedError as error:
            return REFUSED, str(error)
        except TransferError as error:
            return FAILED, str(error)
        self.digests[key] = _digest(content)
        return RIGHT, ""

    async def _get(self, key: bytes) -> tuple[str, str]:
        try:
            block = await self.client.get(BlockRef(key))
        except BlockNotFoundError as error:
            return MISSING, str(error)
        except TransferError as error:
            return FAILED, str(error)
        return (RIGHT, "") if _digest(block.content) == self.digests[key] else (WRONG, key.hex())


def hot_key(seal: Seal, number: int) -> bytes:
    """Return the key of a hot block, which all nodes write at the start and read."""
    return seal.key(b"hot %d" % number)


def _digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=16).digest()


async def _tell_members(client: Client) -> None:
    """Print an event for each change of the client's list of storage nodes.

    The list is polled, because a client reports no changes. An idle client learns of a newer list only from
    answers, so it asks something while not all storage nodes are up.
    """
    epoch = -1
    for look in itertools.count():
        if look % POLLS_PER_QUERY == 0 and any(node.state is not State.UP for node in client.members.nodes):
            with contextlib.suppress(TransferError):
                await client.exists([BlockRef(_digest(b"hot %d" % (look % 8)))])
        if client.members.epoch != epoch:
            epoch = client.members.epoch
            say("members", epoch=epoch, states=[node.state.name for node in client.members.nodes])
        await asyncio.sleep(POLL_S)


async def _run(config: LoadConfig) -> None:
    members = Members.of(config.homes, config.replicas)
    endpoint = UdpEndpoint(config.address)
    seal = seal_of(config.tenant, config.secret)
    client = Client(endpoint, members, seal, ClientOptions(controller=config.controller))
    watch = asyncio.create_task(_tell_members(client))
    try:
        load = Load(config, client)
        await load.prepare()
        say("ready")
        async for line in commands():
            command = json.loads(line)
            if "play" in command:
                await load.play(command["at_s"], command["play"])
                say("played", stats=asdict(client.stats))
            else:
                say("checked", **await load.check())
    finally:
        watch.cancel()
        client.close()
        endpoint.close()


if __name__ == "__main__":
    sys.exit(main("experiments.faults.load", LoadConfig, _run, sys.argv[1:]))
