"""Ends of lifetimes that others are told of."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from hostlib.protocol.block import Block, Place
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.seal import closed
from hostlib.protocol.tombstones import Tombstone, Tombstones
from hostlib.storage.expiry import TELL_AT_ONCE, Expiry
from hostlib.storage.joining import Joining
from hostlib.storage.lifetimes import Lifetime
from hostlib.storage.store import BlockStore
from hostlib.transport.transport import Transport
from tests.asynchronous import in_virtual_time
from tests.hostlib.sealed import SEAL, WRITE

NODES = 16
LIFETIMES = 1000


@in_virtual_time
async def test_lifetimes_that_end_together_leave_room_for_what_a_node_answers() -> None:
    """65,536 messages were sent at once, and the queue of a socket takes 8,192."""
    loop = asyncio.get_running_loop()
    sent: dict[float, int] = {}
    told: set[tuple[str, bytes]] = set()

    def send(address: str, datagrams: list[bytes]) -> None:
        sent[loop.time()] = sent.get(loop.time(), 0) + len(datagrams)
        told.update((address, datagram) for datagram in datagrams)

    store = BlockStore(1 << 20, None, derivation(SEAL), tombstones=Tombstones(loop.time))
    for number in range(LIFETIMES):
        place, proof = Place(1, number.to_bytes(16, "big")), bytes(16)
        store.put(place, Block(WRITE, b"x", closed(proof)), durable=False)
        store.lifetimes.begin(Lifetime(1.0, Tombstone(place, WRITE, proof), 1), lambda error: None)
    members = Members.of([f"10.0.0.{number + 1}" for number in range(NODES)], 2)
    transport: Any = SimpleNamespace(send=send)
    joining = cast(Joining, SimpleNamespace(members=members))
    expiry = Expiry(cast(Transport, transport), store, joining, "10.0.0.1", "10.255.255.254")
    expiry.start()
    await asyncio.sleep(3)
    expiry.close()
    assert expiry.ended == LIFETIMES
    assert len(told) == LIFETIMES * NODES
    assert max(sent.values()) <= TELL_AT_ONCE + NODES
