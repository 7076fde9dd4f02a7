"""A storage node of Weir as a process of the suite.

    python -m engines.conformance.connectors.weir_node ADDRESS

stdout  < ready
stdin   > lose       drop each object by chance   stdout < how many were dropped
"""

from __future__ import annotations

import asyncio
import random
import sys

from hostlib.protocol.content import derivation
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.transport.endpoint import UdpEndpoint

STORE_BYTES = 2 << 30


def lose_half(store: BlockStore) -> int:
    """Drop each object with a chance of one half, always the same ones. Returns how many."""
    choice = random.Random(0)
    lost = [place for place in sorted(store.places(), key=repr) if choice.random() < 0.5]
    for place in lost:
        store._dram.pop(place, None)
    return len(lost)


async def serve(address: str) -> None:
    """Serve until stdin ends."""
    endpoint = UdpEndpoint(address)
    store = BlockStore(STORE_BYTES, None, derivation(Seal(0, PUBLIC_SECRET)))
    node = StorageNode(endpoint, store)
    print("ready", flush=True)
    try:
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print(lose_half(store) if line == "lose" else "unknown", flush=True)
    finally:
        node.close()
        endpoint.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
