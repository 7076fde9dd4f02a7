"""The client of an inference node: fetches blocks and chains of blocks, and puts blocks to their homes.

Each block is assembled from fragments asked for one by one, within a window per home (`hostlib.exchange`).
It is fetched once however many tasks of this node want it (single flight), checked as a whole, and fetched
again past the pool if wrong.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hostlib.errors import OverloadedError, TransferError
from hostlib.exchange import ClientOptions, ClientStats, Exchange
from hostlib.pushed import PushedBlocks
from hostlib.transfer import BlockRef, FetchedBlock, Get
from hostlib.transport import Transport


@dataclass(frozen=True, slots=True)
class FetchedChain:
    """The longest prefix of a chain that could be had, and why it ends before the chain does."""

    blocks: list[FetchedBlock]
    ended_by: TransferError | None


class Client:
    """See the module. Use from one event loop; `verify(key, content)` is the end-to-end check of a block."""

    def __init__(
        self,
        transport: Transport,
        homes: Sequence[str],
        block_bytes: int,
        verify: Callable[[bytes, bytes], bool],
        options: ClientOptions | None = None,
        pushed: PushedBlocks | None = None,
    ) -> None:
        """`pushed` takes what comes unasked; without it the client subscribes to nothing."""
        self._exchange = Exchange(transport, homes, block_bytes, verify, options or ClientOptions(), pushed)

    @property
    def stats(self) -> ClientStats:
        """Counters."""
        return self._exchange.stats

    @property
    def get_latencies_s(self) -> deque[float]:
        """Of the blocks fetched last: from the first request on the wire to the checked block."""
        return self._exchange.get_latencies_s

    def backlog_s(self, home: str) -> float:
        """What is left by now of the work that a home last said to wait there; 0 if it never answered."""
        return self._exchange.backlogs.wait_s(home, asyncio.get_running_loop().time())

    def outstanding(self) -> Counter[str]:
        """Fragments of blocks being fetched that have not come yet, by home."""
        waiting: Counter[str] = Counter()
        for transfer in self._exchange.gets.values():
            waiting[transfer.lane.home] += transfer.missing
        return waiting

    async def get(self, block: BlockRef) -> FetchedBlock:
        """Fetch one block; raises a TransferError if it can't be had."""
        transfer = self._join(block)
        self._exchange.ask_body(transfer)
        try:
            return await asyncio.shield(transfer.future)
        finally:
            self._leave(transfer)

    async def get_chain(self, blocks: Sequence[BlockRef]) -> FetchedChain:
        """Fetch the longest available prefix of a chain.

        Fragment 0 of every block is asked for first, the rest of a block when that has arrived: a block that
        is not found ends the chain before what is behind it is moved.
        """
        leases: list[Get] = []
        ended_by: TransferError | None = None

        def cut(length: int) -> None:
            while len(leases) > length:
                self._leave(leases.pop())

        def cut_behind(failed: asyncio.Future[FetchedBlock], index: int) -> None:
            if not failed.cancelled() and failed.exception():
                cut(index + 1)

        fetched: list[FetchedBlock] = []
        try:
            for index, block in enumerate(blocks):
                leases.append(self._join(block))
                leases[-1].future.add_done_callback(partial(cut_behind, index=index))
        except OverloadedError as error:
            ended_by = error
        try:
            for transfer in tuple(leases):
                arrived = await asyncio.shield(transfer.future)
                fetched.append(arrived)
        except TransferError as error:
            ended_by = error
        finally:
            cut(0)
        return FetchedChain(fetched, ended_by)

    async def put(self, block: BlockRef, content: bytes) -> None:
        """Store a block at its home; raises TransferTimeoutError if not every fragment was acknowledged."""
        transfer = self._exchange.puts.get(block.key) or self._exchange.open_put(block, content)
        await asyncio.shield(transfer.future)

    def close(self) -> None:
        """Give up all transfers; their awaiters are cancelled."""
        self._exchange.close()

    def _join(self, block: BlockRef) -> Get:
        transfer = self._exchange.gets.get(block.key)
        if transfer is None:
            transfer = self._exchange.open_get(block)
        else:
            self.stats.blocks_joined += 1
        transfer.waiters += 1
        return transfer

    def _leave(self, transfer: Get) -> None:
        transfer.waiters -= 1
        if not transfer.waiters:
            self._exchange.abandon(transfer)
