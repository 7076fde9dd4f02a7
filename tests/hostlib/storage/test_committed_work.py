"""What a storage node has promised, and says to those that ask before they fetch."""

from __future__ import annotations

import asyncio

import pytest

from hostlib.client.client import Client
from hostlib.protocol.block import Place
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.wire import VALUE_FRAME_BYTES
from hostlib.storage.committed_work import MAX_SENDERS, SENDER_S, CommittedWork
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from tests.asynchronous import in_virtual_time
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL, TENANT
from tests.hostlib.world import BLOCK_BYTES, FRAGMENTS, key, ref

HOME, NODE, OTHER = "10.0.0.101", "10.0.0.1", "10.0.0.2"
FRAGMENT_S = 0.01
LINK_BIT_S = 8 * VALUE_FRAME_BYTES / FRAGMENT_S


@in_virtual_time
async def test_a_promise_takes_its_time_on_the_link_and_is_over_then() -> None:
    committed = CommittedWork(LINK_BIT_S)
    assert committed.wait_ms() == 0
    committed.add(NODE, 10)
    await asyncio.sleep(0.04)
    committed.add(NODE, 5)
    assert committed.wait_ms() == 110
    await asyncio.sleep(1)
    assert committed.wait_ms() == 0
    committed.add(NODE, 5)
    assert committed.wait_ms() == 50


@in_virtual_time
async def test_who_begins_to_read_and_never_goes_on_counts_for_no_longer_than_its_bound() -> None:
    committed = CommittedWork(LINK_BIT_S)
    for _ in range(1000):
        committed.add(NODE, 65_535)
    assert committed.wait_ms() == 1000 * SENDER_S
    committed.add(OTHER, 10)
    assert committed.wait_ms() == 1000 * SENDER_S + 100
    await asyncio.sleep(0.2)
    committed.add(NODE, 65_535)
    assert committed.wait_ms() == pytest.approx(1000 * SENDER_S + 100)


@in_virtual_time
async def test_senders_are_remembered_up_to_a_bound() -> None:
    committed = CommittedWork(LINK_BIT_S)
    for sender in range(3 * MAX_SENDERS):
        committed.add(str(sender), 1)
    assert len(committed._own_s) == MAX_SENDERS
    assert committed.wait_ms() == 1000 * 3 * MAX_SENDERS * FRAGMENT_S


def test_on_a_link_without_a_limit_nothing_waits() -> None:
    committed = CommittedWork(0.0)
    committed.add(NODE, 1000)
    assert committed.wait_ms() == 0


@pytest.mark.usefixtures("either_core")
@in_virtual_time
async def test_who_asks_is_told_what_others_have_begun_to_read() -> None:
    network = MemoryNetwork()
    store = BlockStore(1 << 20, None, derivation(SEAL))
    store.preload([Place(TENANT, key(number)) for number in range(9)], BLOCK_BYTES)
    members = Members.of([HOME])
    StorageNode(network.port(HOME), store, StorageOptions(HOME, LINK_BIT_S), members)
    reader, asker = (Client(network.port(one), members, SEAL) for one in (NODE, OTHER))
    (before,) = await asker.ask([ref(0)])
    assert (before.home, before.wait_s) == (HOME, 0)
    await reader.get_chain([ref(number) for number in range(4)])
    (after,) = await asker.ask([ref(0)])
    assert 0.8 * 4 * FRAGMENTS * FRAGMENT_S < after.wait_s <= 4 * FRAGMENTS * FRAGMENT_S
    assert len(await asker.ask([ref(number) for number in (7, 8, 9, 0)])) == 2  # nobody has the ninth
    await asyncio.sleep(4 * FRAGMENTS * FRAGMENT_S)
    (then,) = await asker.ask([ref(0)])
    assert then.wait_s == 0
    for client in (reader, asker):
        client.close()
