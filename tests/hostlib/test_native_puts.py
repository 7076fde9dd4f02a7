"""PUTs with the compiled core against those in Python; homes lose, delay and garble what they acknowledge."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib import native
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.native import Core
from hostlib.protocol import wire
from hostlib.protocol.block import Block
from hostlib.protocol.content import block_content
from hostlib.protocol.errors import TransferError
from hostlib.protocol.members import Members
from hostlib.protocol.transfer import BlockRef
from hostlib.transport.assembly import FRAGMENT_BYTES, Assembly
from hostlib.transport.transport import Receiver
from tests.hostlib.bursts import Counting, spoil
from tests.hostlib.sealed import SEAL, TENANT, WRITE, fragments
from tests.hostlib.world import PATIENT
from tests.slow import rest_slow

HOMES = ["10.0.0.101", "10.0.0.102", "10.0.0.103"]
LENGTHS = [1, 512, 513, 5000, 30_000]


class Homes:
    """A transport to homes that acknowledge what they get, more or less."""

    def __init__(self, seed: int) -> None:
        self.queued_bytes = 0
        self.sent: list[bytes] = []
        self._chance = random.Random(seed)
        self._got: dict[tuple[str, bytes], set[int]] = {}
        self._due: dict[str, list[bytes]] = {home: [] for home in HOMES}

    def set_receiver(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        self.sent += [address.encode(), *datagrams]
        for message in map(wire.decode, datagrams):
            if message.op == wire.OP_PUT:
                for home in [HOMES[number - 1] for number in message.homes if number] or [address]:
                    self._take(home, message)

    def _take(self, home: str, message: wire.Message) -> None:
        chance = self._chance
        if chance.random() < 0.05:
            return
        got = self._got.setdefault((home, message.key), set())
        got.add(message.fragment)
        if chance.random() < 0.01:
            got.clear()
        held = wire.FLAG_HELD | wire.FLAG_DURABLE if len(got) == message.fragments else 0
        ack = message._replace(
            op=wire.OP_PUT_ACK, flags=held, backlog_ms=chance.choice([0, 0, 0, 30, 90]), tag=bytes(16),
            homes=(0, 0, 0), value=b"", epoch=chance.choice([0] * 20 + [1]),
        )  # fmt: skip
        match chance.randrange(60):
            case 0:
                ack = ack._replace(op=wire.OP_REFUSED, flags=0, generation=wire.REFUSED_BUSY)
            case 1:
                ack = ack._replace(content=7)
            case 2:
                ack = ack._replace(tenant=TENANT + 1)
        self._due[home].append(wire.encode(ack))

    def burst(self) -> tuple[str, list[bytes]]:
        """What one of them has to say, mostly in order."""
        chance = self._chance
        home = chance.choice(HOMES)
        count = chance.randint(1, 40)
        burst, self._due[home] = self._due[home][:count], self._due[home][count:]
        for _ in range(chance.choice([0, 0, 1, 5]) if burst else 0):
            at = chance.randrange(len(burst))
            spoil(burst, at, chance.randrange(4), chance, (0, 80, 592))
        return home, burst


def play(seed: int, replicas: int) -> list[Any]:
    """What a client sends and comes to know while it puts some blocks."""

    async def main() -> list[Any]:
        chance = random.Random(seed)
        transport = Homes(seed)
        options = ClientOptions(
            new_content=lambda: chance.getrandbits(63) or 1, multicast=seed % 3 > 0, health=PATIENT
        )
        client = Client(transport, Members.of(HOMES, replicas), SEAL, options)
        loop = client._exchange.loop

        async def put(number: int, length: int) -> str:
            key = bytes([number] * 16)
            ref = BlockRef(key, number, 9, 5, 6)
            try:
                await client.put(ref, block_content(key, length), durable=number % 2 > 0, replicas=replicas)
            except TransferError as error:
                return repr(error)
            return "put"

        tasks = [loop.create_task(put(number, length)) for number, length in enumerate([*LENGTHS, *LENGTHS])]
        seen: list[Any] = []
        for _ in range(3000):
            await asyncio.sleep(0.001)
            home, burst = transport.burst()
            if burst:
                transport.receiver(home, burst)
            seen.append(
                [
                    (name, lane.window, lane.allowed, lane.in_flight, lane.timeout_s)
                    for name, lane in client._exchange._lanes.items()
                ]
            )
            seen.append(transport.sent[:])
            transport.sent.clear()
            if all(task.done() for task in tasks):
                break
        seen.append([await task for task in tasks if task.done()])
        seen.append(asdict(client.stats))
        client.close()
        return seen

    return run_virtual(main())


@pytest.mark.parametrize(
    ("seed", "replicas"), rest_slow([(0, 1), (1, 3), (2, 1), (3, 3)], product(range(8), (1, 3)))
)
def test_bursts_change_nothing_but_the_cost(
    compiled: Core, monkeypatch: pytest.MonkeyPatch, seed: int, replicas: int
) -> None:
    counting = Counting(compiled, "take_acks")
    monkeypatch.setattr(native, "core", lambda: native.PYTHON)
    reference = play(seed, replicas)
    monkeypatch.setattr(native, "core", lambda: counting)
    for number, (theirs, ours) in enumerate(zip(play(seed, replicas), reference, strict=True)):
        assert theirs == ours, number
    assert counting.taken > 50


@pytest.mark.parametrize("length", LENGTHS)
def test_what_came_in_runs_and_what_came_alone_make_one_block(
    compiled: Core, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(native, "core", lambda: compiled)
    key = bytes(16)
    content = block_content(key, length)
    messages = fragments(wire.OP_PUT, key, content)
    tags = b"".join(message.tag for message in messages)
    puts = [wire.encode(message) for message in messages]
    write = (TENANT, key, WRITE, "")
    for alone in sorted({0, len(puts) // 3, len(puts) // 2, len(puts) - 1}):
        assembly = Assembly(4)
        done = [assembly.add(message) for message in messages[:alone]]
        taken, block = assembly.add_run(write, len(puts), puts, alone, len(puts) - alone)
        assert (taken, [*done, block][-1]) == (len(puts) - alone, Block(WRITE, content, tags))
        assert len(assembly) == 0


def test_a_flood_that_comes_in_runs_gives_way_to_itself(
    compiled: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes that begin while there is no room are taken as quickly as others, and the bounds are kept."""
    monkeypatch.setattr(native, "core", lambda: compiled)
    honest = fragments(wire.OP_PUT, bytes(16), block_content(bytes(16), LENGTHS[-1]))
    puts = [wire.encode(message) for message in honest]
    assembly = Assembly(8, 1 << 20)
    for number in range(1, 100):
        first = fragments(wire.OP_PUT, bytes([number]) * 16, block_content(bytes(16), 2000))[0]
        write = (TENANT, first.key, WRITE, "10.0.0.9")
        assert assembly.add_run(write, first.fragments, [wire.encode(first)], 0, 1) == (1, None)
        assert len(assembly) <= 8
        if number == 50:
            write = (TENANT, bytes(16), WRITE, "10.0.0.1")
            assert assembly.add_run(write, len(puts), puts, 0, len(puts) - 1)[1] is None
    write = (TENANT, bytes(16), WRITE, "10.0.0.1")
    taken, block = assembly.add_run(write, len(puts), puts, len(puts) - 1, 1)
    assert (taken, block is not None) == (1, True)
    assert assembly.given_up == 92


def test_who_sends_long_writes_in_runs_displaces_no_other_host(
    compiled: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long writes fill most of the memory that is allowed, although they are fewer."""
    monkeypatch.setattr(native, "core", lambda: compiled)
    assembly = Assembly(100, 16 * FRAGMENT_BYTES)

    def add(number: int, address: str, parts: slice) -> Block | None:
        own = fragments(wire.OP_PUT, bytes([number]) * 16, block_content(bytes(16), 4 * wire.VALUE_BYTES))
        puts = [wire.encode(message) for message in own][parts]
        return assembly.add_run((TENANT, own[0].key, WRITE, address), len(own), puts, 0, len(puts))[1]

    for number in range(1, 6):
        assert add(number, "10.0.0.1", slice(1)) is None
    for number in range(6, 50):
        assert add(number, "10.0.0.2", slice(3)) is None
    assert all(add(number, "10.0.0.1", slice(1, None)) is not None for number in range(1, 6))


def test_nothing_is_read_beyond_what_is_there(compiled: Core) -> None:
    put = wire.encode(fragments(wire.OP_PUT, bytes(16), bytes(1024))[0])
    for at, count in ((-1, 1), (0, 2), (1, 1), (0, -1), (2**62, 2**62)):
        with pytest.raises(IndexError):
            compiled.keep({}, [put], at, count, 2)
        with pytest.raises(IndexError):
            compiled.encode_acks([put], at, count, 0, 0, 0, 0, [], 0)
    with pytest.raises(ValueError, match="no PUT"):
        compiled.keep({}, [put[:-1]], 0, 1, 2)
    with pytest.raises(ValueError, match="not there"):
        compiled.join({0: put}, 2)
    with pytest.raises(ValueError, match="too short"):
        compiled.join({0: (bytes(511), bytes(16)), 1: put}, 2)
    state = compiled.tag_state(bytes(32))
    for fragment, content, tags in ((2, bytes(1024), [b""] * 9), (1, bytes(1024), [b""])):
        requests = compiled.new_requests(None, fragment, fragment + 1)
        with pytest.raises(ValueError, match="no fragment"):
            compiled.encode_puts(requests, 0, put, 0, content, tags, state)
