"""Real engines, in their own environment (make test-engines); elsewhere these tests are skipped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hostlib.protocol.content import derivation
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.transport.endpoint import UdpEndpoint
from tests.hostlib.loopback import own_address


@dataclass
class Home:
    """A storage node that serves in a thread until it is told to fall silent."""

    address: str
    node: StorageNode
    store: BlockStore
    stop: threading.Event
    thread: threading.Thread

    def silence(self) -> None:
        self.stop.set()
        self.thread.join()


@pytest.fixture
def home() -> Iterator[Home]:
    """An empty storage node."""
    address, stop, ready = own_address(), threading.Event(), threading.Event()
    made: list[tuple[StorageNode, BlockStore]] = []

    async def serve() -> None:
        endpoint = UdpEndpoint(address)
        store = BlockStore(1 << 30, None, derivation(Seal(0, PUBLIC_SECRET)))
        made.append((StorageNode(endpoint, store), store))
        ready.set()
        await asyncio.to_thread(stop.wait)
        made[0][0].close()
        endpoint.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    opened = Home(address, *made[0], stop, thread)
    try:
        yield opened
    finally:
        opened.silence()


@pytest.fixture
def pool_settings(home: Home) -> dict[str, object]:
    """As an engine's configuration has them."""
    return {
        "address": own_address(),
        "homes": [home.address],
        "lookup_timeout_s": 20.0,
        "transfer_timeout_s": 60.0,
    }
