"""The client of an inference node: fetches blocks and chains of blocks, puts blocks to their homes, asks for
them.

Blocks have any length from a byte to 65,535 fragments of 512 bytes. A block is fetched once however many
tasks of this node want it (single flight). What arrives was written under the client's secret, all of it in
one write: see `hostlib.client.fetches`, `hostlib.client.offer` and docs/guarantees.md.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any

from hostlib.client.client_options import ClientOptions, ClientStats
from hostlib.client.deletion import Deletions
from hostlib.client.exchange import Exchange
from hostlib.client.fetch import Fetch
from hostlib.client.fetches import Fetches
from hostlib.client.hints import Hints
from hostlib.client.lookup import Found, Lookup
from hostlib.client.offer import Offer
from hostlib.client.offers import Offers
from hostlib.client.pushed import PushedBlocks
from hostlib.protocol import wire
from hostlib.protocol.errors import (
    BlockNotFoundError,
    BlockTooLongError,
    CorruptBlockError,
    OverloadedError,
    PutRefusedError,
    TransferError,
    TransferTimeoutError,
)
from hostlib.protocol.expected import expectation
from hostlib.protocol.hints import Hint, HintOutcome
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef, FetchedBlock, FetchedChain
from hostlib.transport.transport import Transport

PUT_TRIES = 3
"""Tries of a PUT whose home said that it holds the block and falls silent before it has shown it."""


class Client:
    """See the module. Use from one event loop, as one tenant."""

    def __init__(
        self,
        transport: Transport,
        members: Members,
        seal: Seal,
        options: ClientOptions | None = None,
        pushed: PushedBlocks | None = None,
    ) -> None:
        """Make a client. `pushed` takes what comes unasked; without it the client subscribes to nothing."""
        self.get_latencies_s: deque[float] = deque(maxlen=(options or ClientOptions()).latencies_kept)
        """Of the blocks fetched last: from the first request on the wire to the checked block."""
        self._exchange = Exchange(transport, members, seal.tenant, options or ClientOptions())
        self._fetches = Fetches(self._exchange, seal, pushed, self.get_latencies_s)
        self._offers = Offers(self._exchange, seal)
        self._lookup = Lookup(self._exchange, seal.tenant)
        self._deletions = Deletions(self._exchange, seal)
        self._hints = Hints(self._exchange, seal.tenant)
        self._on_value = self._exchange.handlers[wire.OP_VALUE]
        self._exchange.handlers[wire.OP_VALUE] = self._on_any_value
        self._exchange.handlers[wire.OP_NOT_FOUND] = self._on_not_found
        self._on_found = self._exchange.handlers[wire.OP_FOUND]
        self._exchange.handlers[wire.OP_FOUND] = self._on_any_found
        self._exchange.handlers[wire.OP_REFUSED] = self._on_refused

    @property
    def stats(self) -> ClientStats:
        """Return the counters."""
        return self._exchange.stats

    @property
    def members(self) -> Members:
        """Return the newest list of storage nodes."""
        return self._exchange.members

    @property
    def suspects(self) -> list[str]:
        """Addresses of homes that do not answer."""
        return self._exchange.health.suspects

    @property
    def is_answering(self) -> bool:
        """Return whether any home answers, as far as is known."""
        health = self._exchange.health
        return not all(health.is_suspected(member.address) for member in health.members.nodes)

    def home(self, block: BlockRef) -> str:
        """Return the address of the home that is asked for a block."""
        homes, _ = self._exchange.health.homes_of(block)
        return homes[0] if homes else self.members.order(block.key)[0].address

    def backlog_s(self, home: str) -> float:
        """Return what is left by now of the work that a home last said to wait there; 0 if it never
        answered."""
        return self._exchange.backlogs.wait_s(home, self._exchange.loop.time())

    def outstanding(self, expected: int = 1) -> Counter[str]:
        """Return fragments of blocks being fetched that have not come yet, by home; a block whose length is
        not known yet counts as `expected`."""
        waiting: Counter[str] = Counter()
        for fetch in self._fetches.active.values():
            waiting[fetch.homes[0]] += fetch.missing if fetch.content else expected
        return waiting

    async def get(self, block: BlockRef) -> FetchedBlock:
        """Fetch one block; raises a TransferError if it can't be had."""
        fetch = self._join(block)
        fetch.certain = True
        try:
            return await asyncio.shield(fetch.future)
        finally:
            self._leave(fetch)

    async def get_into(self, block: BlockRef, buffer: memoryview) -> FetchedBlock:
        """Fetch one block into `buffer`, of bytes; its `content` is then the part of the buffer that was
        filled.

        Each fragment is copied from the packet to its place, nothing is copied after that, unless another
        task fetches the block, too. Raises BlockTooLongError if the block does not fit, else as `get`; what
        the buffer holds then is undefined. Nothing is written to it after the call.
        """
        if buffer.readonly or buffer.itemsize != 1 or not buffer.c_contiguous:
            raise ValueError("the buffer must be writable, contiguous and of bytes")
        buffer = buffer.cast("B")
        if block.key in self._fetches.active:
            return _copied(await self.get(block), buffer)
        fetch = self._fetches.open(block, buffer)
        fetch.certain = True
        fetch.waiters += 1
        try:
            fetched = await asyncio.shield(fetch.future)
        finally:
            self._leave(fetch)
        return _copied(fetched, buffer) if fetch.target is None else fetched

    async def get_chain(self, blocks: Sequence[BlockRef]) -> FetchedChain:
        """Fetch the longest available prefix of a chain.

        Fragment 0 of every block is asked for first, the rest of a block when that has arrived: a block that
        is not found ends the chain before what is behind it is moved.
        """
        leases: list[Fetch] = []
        ended_by: TransferError | None = None
        arrived = 0
        """Of the chain, from its first block on."""
        loop = self._exchange.loop
        prefix: asyncio.Future[None] = loop.create_future()

        def cut(length: int) -> None:
            while len(leases) > length:
                lease = leases.pop()
                if not lease.future.done():
                    lease.watchers.remove(on_end)
                self._leave(lease)

        def on_end(ended: Fetch) -> None:
            """Wake the task once: when all came, or when the first of those that did not is known."""
            nonlocal arrived
            if ended.fetched is None and ended in leases:
                cut(leases.index(ended) + 1)
            while arrived < len(leases) and leases[arrived].fetched is not None:
                arrived += 1
            if not prefix.done() and (arrived == len(leases) or leases[arrived].future.done()):
                prefix.set_result(None)

        fetched: list[FetchedBlock] = []
        try:
            for block in blocks:
                lease = self._join(block)
                leases.append(lease)
                lease.watchers.append(on_end)
                if lease.future.done():  # that there is nobody to ask was known at once
                    loop.call_soon(on_end, lease)
        except OverloadedError as error:
            ended_by = error
        try:
            if leases:
                await prefix
            for lease in tuple(leases):
                fetched.append(lease.future.result())  # noqa: PERF401  (what came before an error counts)
        except TransferError as error:
            ended_by = error
        finally:
            cut(0)
        return FetchedChain(fetched, ended_by)

    async def put(
        self,
        block: BlockRef,
        content: wire.Buffer,
        *,
        durable: bool = False,
        replicas: int = 1,
        at_least: int | None = None,
    ) -> None:
        """Store a block at `replicas` homes; returns when each says that it holds it: on disk if `durable`.

        Homes that do not answer are left out where no controller names others, as long as `at_least` homes
        are left (None: all). Blocks are immutable: where one is held already, it stays as it is; if
        `durable`, it is read from there, as whoever knows the key may have put anything. `content`, of bytes,
        must not change meanwhile. Raises PutRefusedError if a home can't keep it, holds something under its
        key that no reader would take, or too few are up, TransferTimeoutError if one does not answer,
        ValueError for content without a byte or longer than 65,535 fragments.
        """
        view = memoryview(content).cast("B")
        if not 0 < len(view) <= wire.MAX_BLOCK_BYTES:
            raise ValueError(f"a block has 1 to {wire.MAX_BLOCK_BYTES} bytes, not {len(view)}")
        if not 1 <= replicas <= wire.MAX_REPLICAS:
            raise ValueError(f"a block has 1 to {wire.MAX_REPLICAS} homes, not {replicas}")
        least = replicas if at_least is None else min(at_least, replicas)
        until_s = self._exchange.loop.time() + self._exchange.options.longest_s(
            wire.fragment_count(len(view))
        )
        for tries_left in reversed(range(PUT_TRIES)):
            offer = await self._offer(block, view, durable, replicas, least, until_s)
            try:
                await self._prove(offer, durable)
                return
            except TransferTimeoutError:  # of a home that fell silent: the list names another, or will
                if not tries_left or not self.members.epoch:
                    raise

    async def _offer(
        self, block: BlockRef, view: memoryview, durable: bool, replicas: int, least: int, until_s: float
    ) -> Offer:
        """Offer a block to its homes, and return the offer once they hold it. It ends when `until_s` is over.

        Another task's offer counts only if nothing of it was sent before: the block may have been deleted
        since it was acknowledged.
        """
        first = self._exchange.numbers.next
        while (offer := self._offers.active.get(block.key)) is not None:
            await self._until(until_s, offer.future, block, "an earlier PUT of it went on for too long")
            is_of_before = wire.is_before(offer.first_sequence, first)
            if _covers(offer, durable, replicas, least) and not is_of_before and not offer.future.cancelled():
                offer.future.result()
                return offer
        offer = self._offers.open(block, view, durable, replicas, least, until_s)
        try:
            await asyncio.shield(offer.future)
        except asyncio.CancelledError:  # `content` is the caller's again
            self._offers.finish(offer)
            raise
        return offer

    async def _prove(self, offer: Offer, durable: bool) -> None:
        """Read an offered block from the homes that held one before, within the offer's time."""
        block = offer.block
        for home in offer.unproven if durable else ():
            while (other := self._fetches.active.get(block.key)) is not None:
                await self._until(offer.until_s, other.future, block, "a GET of it went on for too long")
            fetch = self._fetches.open(block._replace(homes=(home,)))
            fetch.flags |= wire.FLAG_BYPASS
            fetch.wanted_s = offer.until_s - self._exchange.options.longest_s(offer.fragments)
            fetch.waiters += 1
            try:
                fetched = await asyncio.shield(fetch.future)
            except (BlockNotFoundError, CorruptBlockError):
                why = f"{home} holds something under its key that this tenant did not write, or lost it again"
                raise PutRefusedError(block.key, why, wire.REFUSED_CONTENT) from None
            finally:
                self._leave(fetch)
            if fetched.times.home != home:  # others who read the block meanwhile have it from there
                raise TransferTimeoutError(block.key, f"{home} did not give it, another home did")

    async def _until(self, until_s: float, future: asyncio.Future[Any], block: BlockRef, why: str) -> None:
        """Wait for another transfer of a block; TransferTimeoutError if it has not ended by then."""
        await asyncio.wait([future], timeout=until_s - self._exchange.loop.time())
        if not future.done():
            raise TransferTimeoutError(block.key, why)

    async def delete(self, block: BlockRef) -> bool:
        """Delete a block from every storage node and from the pools on the way to them; return whether there
        was one.

        When this returns no read that begins later gets a write of the block that was there before. What is
        put from then on makes the block anew. Raises TransferTimeoutError if a storage node that is not known
        to be down does not answer, DeleteRefusedError if one can't delete: then the block may be there, or
        come back.
        """
        return await self._deletions.delete(block)

    async def hint(self, block: BlockRef, hint: Hint, seconds: int = 0) -> HintOutcome:
        """Tell the homes of a block what would be good to do with it; return what became of that.

        Pools in switches are not told. ValueError if there is no such time. Nothing else is raised.
        """
        if hint is Hint.EXPIRE:
            return await self._hints.expire(block, seconds, self._deletions)
        return await self._hints.give(block, hint, seconds)

    def expect(self, blocks: Iterable[tuple[BlockRef, int]]) -> None:
        """Tell the controller, if there is one, of blocks that will be put, each with its length in
        fragments: what it gives room to is in a pool as soon as its home has it. It is no promise."""
        epoch = self.members.epoch & 0xFF
        self._exchange.tell_controller(expectation(self._exchange.tenant, blocks, epoch))

    async def ask(self, blocks: Sequence[BlockRef]) -> list[Found]:
        """Return where the blocks are, from the first on to the first that nobody has; nothing is moved.

        Raises TransferTimeoutError if it depends on a home that does not answer.
        """
        questions = [self._lookup.ask(block) for block in blocks]
        places: list[Found] = []
        try:
            for question in questions:
                found = await asyncio.shield(question.future)
                if found is None:
                    break
                places.append(found)
        finally:
            for question in questions:
                self._lookup.leave(question)
        return places

    async def exists(self, blocks: Sequence[BlockRef]) -> int:
        """Return how many of the blocks, from the first on, can be had: as `ask`."""
        return len(await self.ask(blocks))

    async def present(self, blocks: Sequence[BlockRef], within_s: float) -> list[bool | None]:
        """Return whether each of the blocks can be had; None where no home that may hold it answers within
        that time.

        A question without an answer stays open, so that a home that is silent for longer than callers wait is
        noticed. Such questions are bounded: beyond `ClientOptions.max_transfers` they end with the call.
        """
        questions = [self._lookup.ask(block) for block in blocks]
        waits = True
        try:
            if questions:
                await asyncio.wait([question.future for question in questions], timeout=within_s)
            waits = len(self._lookup.active) <= self._exchange.options.max_transfers
            return [question.presence_known() for question in questions]
        except asyncio.CancelledError:
            waits = False
            raise
        finally:
            for question in questions:
                if waits and not question.future.done():
                    question.askers -= 1
                else:
                    self._lookup.leave(question)

    def close(self) -> None:
        """Give up all transfers; their awaiters are cancelled."""
        self._exchange.close()
        self._deletions.close()
        self._hints.close()
        for fetch in list(self._fetches.active.values()):
            self._fetches.finish(fetch)
        for offer in list(self._offers.active.values()):
            self._offers.finish(offer)
        for question in list(self._lookup.active.values()):
            self._lookup.finish(question)

    def _join(self, block: BlockRef) -> Fetch:
        fetch = self._fetches.active.get(block.key)
        if fetch is None:
            fetch = self._fetches.open(block)
        else:
            self.stats.blocks_joined += 1
            self._fetches.join(fetch, block)
        fetch.waiters += 1
        return fetch

    def _leave(self, fetch: Fetch) -> None:
        fetch.waiters -= 1
        if not fetch.waiters and not fetch.future.done():
            self._fetches.finish(fetch)

    def _on_not_found(self, message: wire.Message, address: str, now_s: float) -> None:
        """Handle a NOT_FOUND. Said of a question about a block, it is also true of the block."""
        if message.flags & wire.FLAG_HINT:
            self._hints.on_reply(message, address)
            return
        self._deletions.on_reply(message, address, now_s)
        if message.key in self._lookup.active:
            self._lookup.on_not_found(message, address, now_s)
        if message.key in self._fetches.active:
            self._fetches.on_not_found(message, address, now_s)

    def _on_any_found(self, message: wire.Message, address: str, now_s: float) -> None:
        """Handle a FOUND that answers a question about a block, or a hint."""
        if message.flags & wire.FLAG_HINT:
            self._hints.on_reply(message, address)
        else:
            self._on_found(message, address, now_s)

    def _on_any_value(self, message: wire.Message, address: str, now_s: float) -> None:
        """Handle a value that answers a fetch or a deletion."""
        self._deletions.on_reply(message, address, now_s)
        self._on_value(message, address, now_s)

    def _on_refused(self, message: wire.Message, address: str, now_s: float) -> None:
        self._deletions.on_reply(message, address, now_s)
        if not self._offers.on_refused(message, address, now_s):
            self._lookup.on_refused(message, address, now_s)
            self._fetches.on_refused(message, address, now_s)


def _covers(offer: Offer, durable: bool, replicas: int, least: int) -> bool:
    """Return whether an offer that is under way does at least what is asked for."""
    return offer.durable >= durable and offer.replicas >= replicas and offer.least >= least


def _copied(block: FetchedBlock, buffer: memoryview) -> FetchedBlock:
    length = len(block.content)
    if length > len(buffer):
        raise BlockTooLongError(block.key, f"{length} bytes do not fit a buffer of {len(buffer)}")
    buffer[:length] = block.content
    return block._replace(content=buffer[:length])
