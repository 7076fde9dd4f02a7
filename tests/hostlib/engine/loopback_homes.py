"""Storage nodes on the loopback interface, served by a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hostlib.protocol.content import derivation
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.transport.endpoint import UdpEndpoint
from tests.hostlib.loopback import own_address


@dataclass(frozen=True)
class Home:
    """One storage node."""

    address: str
    store: BlockStore

    def holds(self, tenant: int, key: bytes) -> bool:
        """Whether the block is in its memory."""
        return any(place.tenant == tenant and place.key == key for place in self.store.places())


@contextmanager
def storage_nodes(count: int, store_bytes: int = 1 << 28) -> Iterator[list[Home]]:
    """So many storage nodes that serve until the end."""
    seal = Seal(0, PUBLIC_SECRET)
    homes = [Home(own_address(), BlockStore(store_bytes, None, derivation(seal))) for _ in range(count)]
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        endpoints = [UdpEndpoint(home.address) for home in homes]
        nodes = [StorageNode(endpoint, home.store) for endpoint, home in zip(endpoints, homes, strict=True)]
        ready.set()
        await asyncio.to_thread(stop.wait)
        for node in nodes:
            node.close()
        for endpoint in endpoints:
            endpoint.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    try:
        yield homes
    finally:
        stop.set()
        thread.join()
