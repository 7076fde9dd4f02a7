"""A storage node with the compiled core against one in Python; what comes is not always what it should be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from experiments.simulate_faults.virtual_time import run_virtual
from hostlib import native
from hostlib.native import Core
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, derivation, derived_write
from hostlib.protocol.members import Members
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import StoreOptions
from hostlib.transport.transport import Receiver
from tests.hostlib.bursts import spoil
from tests.hostlib.sealed import SEAL, TENANT, fragments

LENGTHS = [1, wire.VALUE_BYTES, wire.VALUE_BYTES + 1, 3000, 9000]
PUT = range(100, 106)
"""Blocks that are not there from the start."""
ADDRESSES = ["10.0.0.1", "10.0.0.2"]


def key(number: int) -> bytes:
    return bytes([number] * 16)


@dataclass
class Wire:
    """A transport that remembers."""

    sent: list[tuple[str, list[bytes]]] = field(default_factory=list)
    queued_bytes: int = 0

    def set_receiver(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, address: str, datagrams: Sequence[bytes]) -> None:
        self.sent.append((address, list(datagrams)))


def some_gets(chance: random.Random) -> list[bytes]:
    """For one block, there or not, mostly of the write that is there."""
    number = chance.choice([*range(len(LENGTHS) + 2), *PUT])
    length = LENGTHS[number % len(LENGTHS)]
    held = wire.fragment_count(length)
    write = chance.choice([0, derived_write(key(number)), derived_write(key(number)), 5])
    count = chance.choice([0, held, held, held + 1])
    flags = chance.choice(
        [0, 0, 0, wire.FLAG_RETRY, wire.FLAG_BYPASS | wire.FLAG_REPAIR, wire.FLAG_FILL, 0xF004]
    )
    return [
        wire.encode(
            wire.Message(
                wire.OP_GET, key(number), fragment, count, flags, 9, chance.getrandbits(32),
                chance.randrange(9), 9, chance.getrandbits(32), 5, chance.randrange(99),
                TENANT if chance.random() < 0.98 else TENANT + 1, write, (1, 2, 3), 7,
            )
        )
        for fragment in chance.sample(range(max(1, count)), chance.randint(1, max(1, count)))
    ]  # fmt: skip


def some_puts(chance: random.Random) -> list[bytes]:
    """Of a block that comes and goes again."""
    number = chance.choice(PUT)
    content = block_content(key(number), chance.choice([LENGTHS[number % len(LENGTHS)]] * 3 + [6000]))
    parts = fragments(wire.OP_PUT, key(number), content, chance.choice([5, 5, 5, 6]))
    chance.shuffle(parts)
    flags = chance.choice([0, 0, 0, 0, wire.FLAG_RECLAIM, wire.FLAG_RETRY, wire.FLAG_DURABLE])
    first = chance.getrandbits(16)
    messages = [part._replace(flags=flags, sequence=first + at) for at, part in enumerate(parts)]
    return [wire.encode(message) for message in messages]


def damage(burst: list[bytes], chance: random.Random) -> None:
    """Now and then something twice, out of order, damaged or of no sense."""
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(len(burst))
        spoil(burst, at, chance.randrange(4), chance, (0, 79, 80, 80 + wire.VALUE_BYTES))


def play(seed: int, dram_bytes: int, tenant_bytes: int = 0) -> list[Any]:
    """What a node answers, and what it has and counts after each burst."""

    async def main() -> list[Any]:
        chance = random.Random(seed)
        options = StoreOptions(max_partial=3, tenant_bytes=tenant_bytes)
        store = BlockStore(dram_bytes, None, derivation(SEAL), options)
        places = [Place(TENANT, key(number)) for number in range(len(LENGTHS))]
        store.preload(places, 0, dict(zip(places, LENGTHS, strict=True)))
        transport = Wire()
        node = StorageNode(transport, store, StorageOptions(link_bit_s=1e6), Members.of(ADDRESSES))
        seen: list[Any] = []
        for _ in range(60):
            transport.queued_bytes = chance.randrange(99_999)
            burst: list[bytes] = []
            for _ in range(chance.randint(1, 5)):
                burst += (some_gets if chance.random() < 0.6 else some_puts)(chance)
            damage(burst, chance)
            view = bytes if native.core().is_compiled else memoryview
            transport.receiver(chance.choice(ADDRESSES), [view(datagram) for datagram in burst])
            seen.append([transport.sent[:], list(store._dram.items()), store.sizes(), asdict(store.stats)])
            seen.append([asdict(node.stats), dict(node._successors._next), dict(store._tenant_bytes)])
            transport.sent.clear()
        node.close()
        return seen

    return run_virtual(main())


@pytest.mark.parametrize(
    ("dram_bytes", "tenant_bytes"),
    [(1 << 20, 0), (30_000, 0), (1 << 20, 49 * wire.VALUE_BYTES)],
    ids=["all", "few", "share"],
)
@pytest.mark.parametrize("seed", range(8))
def test_bursts_change_nothing_but_the_cost(
    compiled: Core, monkeypatch: pytest.MonkeyPatch, seed: int, dram_bytes: int, tenant_bytes: int
) -> None:
    served = kept = 0

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(compiled, name)

        def serve_gets(self, *arguments: Any) -> Any:
            nonlocal served
            run = compiled.serve_gets(*arguments)
            served += run[0] if run else 0
            return run

        def keep(self, *arguments: Any) -> int:
            nonlocal kept
            count = compiled.keep(*arguments)
            kept += count
            return count

    monkeypatch.setattr(native, "core", lambda: native.PYTHON)
    reference = play(seed, dram_bytes, tenant_bytes)
    monkeypatch.setattr(native, "core", Counting)
    for number, (theirs, ours) in enumerate(
        zip(play(seed, dram_bytes, tenant_bytes), reference, strict=True)
    ):
        assert theirs == ours, number
    assert served
    assert kept
