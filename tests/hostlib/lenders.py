"""Nodes that lend their memory on an in-memory network, with an index at a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hostlib.client.client import Client
from hostlib.model.watched_tiers import WatchedTiers
from hostlib.peer.index import IndexConfig, IndexProcess
from hostlib.peer.lender import Lender
from hostlib.protocol.content import block_content
from hostlib.protocol.members import Members
from hostlib.transport.shared_endpoint import SharedEndpoint
from tests.asynchronous import until
from tests.hostlib.network import MemoryNetwork
from tests.hostlib.sealed import SEAL
from tests.hostlib.world import BLOCK_BYTES, FRAGMENTS, key

LINK_BIT_S = 1e6
INDEX_LINK_BIT_S = 1e3
"""By which the index reckons: what is promised waits for longer than a busy machine takes."""


def index_of(folder: Path, nodes: Sequence[str]) -> IndexProcess:
    """An index in this process."""
    return IndexProcess(
        IndexConfig(
            result=str(folder / "result"), socket=str(folder / "index"), nodes=list(nodes),
            block_fragments=FRAGMENTS, link_bit_s=INDEX_LINK_BIT_S,
        )
    )  # fmt: skip


@asynccontextmanager
async def index(folder: Path, nodes: Sequence[str]) -> AsyncIterator[IndexProcess]:
    """The same, closed in the end."""
    served = index_of(folder, nodes)
    try:
        yield served
    finally:
        served.close()
        await asyncio.sleep(0)


class LendingNode:
    """Its tiers, its client, and what lends."""

    def __init__(self, network: MemoryNetwork, address: str, nodes: Sequence[str], socket: Path) -> None:
        shared = SharedEndpoint(network.port(address))
        members = Members.of(nodes)
        self.tiers = WatchedTiers(4, 4)
        self.lender = Lender(
            shared.answering, address, members, LINK_BIT_S, str(socket), self.tiers, SEAL, block_content,
            lambda key: BLOCK_BYTES,
        )  # fmt: skip
        self.lending = self.lender.lending
        self.client = Client(shared.client, members, SEAL)

    def hold(self, *numbers: int) -> None:
        """In its GPU, as after a request."""
        self.tiers.keep([key(number) for number in numbers])

    def close(self) -> None:
        self.client.close()
        self.lender.close()


async def known(index: IndexProcess, blocks: int) -> None:
    """Wait until the index knows so many."""
    await until(lambda: index.report()["blocks"] == blocks)
