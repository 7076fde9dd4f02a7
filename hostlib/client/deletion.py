"""Deletions: a tenant has its own blocks forgotten, by every storage node and by the pools on the way.

First each storage node is asked, past the pool, for the block's first fragment, and the pool once, too: that
says which writes of the block there are, and what it takes to prove that they are this tenant's
(`hostlib.protocol.seal.Seal.proof`). Then every storage node is told to forget each of them. All that are not
down must say so: who is away copies from them what was deleted before it gives anything away again. It can't
learn so of a write that only nodes which are down hold, as nobody else could say which that is: where there
may be one, the deletion fails. Last the controller has the pools of all switches forget the block. If it
goes by another list, by which others may be there, all begins anew until the two lists agree.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.errors import DeleteRefusedError, TransferTimeoutError
from hostlib.protocol.members import State, is_later_in_message
from hostlib.protocol.tombstones import Tombstone, delete_message

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from hostlib.client.exchange import Exchange
    from hostlib.protocol.seal import Seal
    from hostlib.protocol.transfer import BlockRef

AT_ONCE: Final = 64
"""Blocks that are being deleted; more wait for their turn."""
PATIENCE_S: Final = 10.0
"""Seconds that a storage node may take for its answer."""
POOLS_S: Final = 1.0
"""Seconds that the controller may take to have all switches forget a write."""
AGAIN_S: Final = 0.1
MAX_AGAIN_S: Final = 0.5
"""Longest wait before another try, in seconds. Waits double from the first try on."""
WHY: Final = {
    wire.REFUSED_FULL: "its disk does not take it",
    wire.REFUSED_PROOF: "the proof is not that of the write that it holds",
}


@dataclass(slots=True)
class _Question:
    """Question to one storage node about one block, until it answers."""

    future: asyncio.Future[wire.Message]
    first_sequence: int
    """A number that no earlier question has."""
    takes: Callable[[wire.Message], bool]


@dataclass(slots=True)
class _Deletion:
    """One block that is being deleted."""

    block: BlockRef
    stones: dict[Tombstone, int] = field(default_factory=dict)
    """Tombstones of the writes that were found, with their length in fragments."""
    told: set[tuple[str, Tombstone]] = field(default_factory=set)
    """Storage nodes and the tombstones that they have obeyed."""
    asked: set[str] = field(default_factory=set)
    """Storage nodes that have said what they hold."""
    pool_asked: bool = False
    """Whether the pool, or a home behind it, has said what it holds."""
    epochs: set[int] = field(default_factory=set)
    """Epochs of the lists of those who obeyed, as messages carry them."""
    is_disputed: bool = False
    """Whether the controller has said that it goes by another list: by an earlier one, too, if its clock was
    set back."""


class Deletions:
    """The deletions of a client."""

    def __init__(self, exchange: Exchange, seal: Seal) -> None:
        self._exchange, self._seal = exchange, seal
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._questions: dict[tuple[str, bytes], list[_Question]] = {}
        exchange.handlers[wire.OP_DELETED] = self.on_reply

    async def delete(self, block: BlockRef) -> bool:
        """Delete all writes of a block; return whether there were any.

        Raises TransferTimeoutError if a storage node does not answer, or if homes are down that may hold what
        nobody else does. Raises DeleteRefusedError if one can't delete. Then the block may be there, or come
        back.
        """
        async with self._turns:
            deletion = _Deletion(block)
            until_s = self._exchange.loop.time() + 2 * PATIENCE_S
            while not (self._is_done(deletion) and await self._controller_agrees(deletion)):
                if self._exchange.loop.time() > until_s:
                    raise TransferTimeoutError(block.key, "the list of storage nodes changes all the time")
                await self._round(deletion)
        self._check_homes(deletion)
        self._exchange.stats.blocks_deleted += bool(deletion.stones)
        return bool(deletion.stones)

    async def write_at(self, block: BlockRef, node: str) -> tuple[Tombstone, int] | None:
        """Return what deletes the write of a block that a storage node holds, and its length in fragments.

        None if it holds none. Raises TransferTimeoutError if it does not answer.
        """
        found = _Deletion(block)
        await self._look(found, node, past_pool=True)
        return next(iter(found.stones.items()), None)

    def on_reply(self, message: wire.Message, address: str, now_s: float) -> None:
        """Take a VALUE, NOT_FOUND, REFUSED or DELETED that may be about a block that is being deleted."""
        for question in self._questions.get((address, message.key), ()):
            if message.tenant != self._seal.tenant or question.future.done():
                continue
            if not wire.is_of_before(message, question.first_sequence) and question.takes(message):
                question.future.set_result(message._replace(value=bytes(message.value)))

    def close(self) -> None:
        """Wait for nothing any more; who does is cancelled."""
        for questions in self._questions.values():
            for question in questions:
                question.future.cancel()

    def nodes(self) -> list[str]:
        """Return the addresses of all storage nodes that are not down."""
        members = self._exchange.members
        return [member.address for member in members.nodes if member.state is not State.DOWN]

    def _is_done(self, deletion: _Deletion) -> bool:
        """Return whether all storage nodes of the newest list have obeyed, and know no newer one."""
        nodes, epoch = self.nodes(), self._exchange.members.epoch
        return (
            bool(nodes)
            and deletion.pool_asked
            and deletion.asked.issuperset(nodes)
            and all((node, stone) in deletion.told for node in nodes for stone in deletion.stones)
            and not any(is_later_in_message(theirs, epoch) for theirs in deletion.epochs)
        )

    async def _round(self, deletion: _Deletion) -> None:
        """Ask who was not asked yet, then tell who was not told yet."""
        nodes = self.nodes()
        if not nodes:
            raise TransferTimeoutError(deletion.block.key, "no storage node is up")
        if not deletion.pool_asked:
            await self._look_into_pool(deletion, nodes)
        new = [node for node in nodes if node not in deletion.asked]
        await self._together(self._look(deletion, node, past_pool=True) for node in new)
        untold = [
            (node, stone) for node in nodes for stone in deletion.stones if (node, stone) not in deletion.told
        ]
        await self._together(self._tell(deletion, node, stone) for node, stone in untold)
        if not new and not untold:  # somebody knows a newer list
            self._exchange.say_hello()
            await asyncio.sleep(AGAIN_S)

    async def _together(self, work: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Await all of the work; raise the first error, with nothing left under way."""
        tasks = [asyncio.ensure_future(one) for one in work]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _check_homes(self, deletion: _Deletion) -> None:
        """Raise TransferTimeoutError if homes that are down may hold a write that was not found: if they may
        be all that were given the block, or if nobody else has any write of it."""
        key, members = deletion.block.key, self._exchange.members
        down = [one.address for one in members.down_homes(key)]
        unknown = [address for address in down if address not in deletion.asked]
        if unknown and (not deletion.stones or len(down) >= members.replicas):
            who = ", ".join(unknown)
            why = f"{who}: down, and may hold it: delete it again when it is back"
            raise TransferTimeoutError(key, why)

    async def _look_into_pool(self, deletion: _Deletion, nodes: list[str]) -> None:
        """Ask the pool, which may have what no home has any more, and answers even if no home does."""
        homes, _ = self._exchange.health.homes_of(deletion.block)
        home = next((one for one in homes if one in nodes), nodes[0])
        await self._look(deletion, home, past_pool=False)

    async def _look(self, deletion: _Deletion, node: str, past_pool: bool) -> None:
        """Learn which write a storage node holds."""
        block, flags = deletion.block, wire.FLAG_BYPASS if past_pool else 0
        message = wire.Message(
            wire.OP_GET, block.key, 0, 0, depth=block.depth, chain_blocks=block.chain_blocks,
            parent=block.parent, tenant=self._seal.tenant, epoch=self._exchange.members.epoch & 0xFF,
        )  # fmt: skip

        wrong = 0

        def takes(reply: wire.Message) -> bool:
            nonlocal wrong
            if reply.flags & wire.FLAG_BYPASS != flags or reply.fragment:
                return False
            if reply.op == wire.OP_VALUE and not self._seal.is_genuine(reply):
                wrong += 1
                return wrong > self._exchange.options.corrupt_limit  # nobody of this tenant wrote it
            if reply.op == wire.OP_REFUSED:
                return not reply.content and reply.generation == wire.REFUSED_UNREADABLE
            return reply.op == wire.OP_VALUE or (reply.op == wire.OP_NOT_FOUND and not reply.content)

        def encode(again: int) -> bytes:
            retry = wire.FLAG_RETRY if again else 0
            return wire.encode(message._replace(sequence=self._exchange.numbers.take(), flags=flags | retry))

        reply = await self._ask(block.key, node, encode, takes)
        if reply is None:
            return  # it is down by now
        if past_pool:
            deletion.asked.add(node)
        else:
            deletion.pool_asked = True
        if self._seal.is_genuine(reply):
            proof = self._seal.proof(block.key, reply.fragments, reply.content, reply.value)
            stone = Tombstone(Place(self._seal.tenant, block.key), reply.content, proof)
            deletion.stones.setdefault(stone, reply.fragments)

    async def _tell(self, deletion: _Deletion, node: str, stone: Tombstone) -> None:
        """Have a storage node delete a write."""
        epoch = self._exchange.members.epoch & 0xFF

        def takes(reply: wire.Message) -> bool:
            is_refusal = reply.op == wire.OP_REFUSED and reply.generation in WHY
            return (reply.op == wire.OP_DELETED or is_refusal) and reply.content == stone.write

        def encode(again: int) -> bytes:
            return delete_message(stone, deletion.stones[stone], self._exchange.numbers.take(), epoch)

        reply = await self._ask(deletion.block.key, node, encode, takes)
        if reply is None:
            return
        if reply.op == wire.OP_REFUSED:
            self._exchange.stats.refused += 1
            why = f"{node} does not delete it: {WHY[reply.generation]}"
            raise DeleteRefusedError(deletion.block.key, why, reply.generation)
        deletion.told.add((node, stone))
        if reply.epoch:
            deletion.epochs.add(reply.epoch)

    async def _controller_agrees(self, deletion: _Deletion) -> bool:
        """Have all pools forget the block; return whether nobody else is up by the controller's list."""
        anything = Tombstone(Place(self._seal.tenant, deletion.block.key), 0, bytes(wire.TAG_BYTES))
        stones = deletion.stones or {anything: 1}
        await self._together(self._tell_controller(deletion, *stone) for stone in stones.items())
        return not deletion.is_disputed and self._is_done(deletion)

    async def _tell_controller(self, deletion: _Deletion, stone: Tombstone, fragments: int) -> None:
        """Have the pools of all switches forget a write, those included that no storage node's answer passed.

        A controller that does not answer is counted, and not waited for.
        """
        controller = self._exchange.options.controller
        if controller is None or not self._exchange.members.epoch:
            return

        def takes(reply: wire.Message) -> bool:
            return (
                reply.op == wire.OP_DELETED
                and reply.content == stone.write
                and bool(reply.flags & wire.FLAG_HELD)
            )

        def encode(again: int) -> bytes:
            return delete_message(stone, fragments, self._exchange.numbers.take())

        try:
            reply = await self._ask(deletion.block.key, controller, encode, takes, POOLS_S)
        except TransferTimeoutError:
            self._exchange.stats.pools_untold += 1
            return
        deletion.is_disputed = reply is not None and reply.generation != self._exchange.members.epoch

    async def _ask(
        self,
        key: bytes,
        node: str,
        encode: Callable[[int], bytes],
        takes: Callable[[wire.Message], bool],
        patience_s: float = PATIENCE_S,
    ) -> wire.Message | None:
        """Return the answer of a storage node or the controller; None if the list says by now that it is
        down."""
        question = _Question(self._exchange.new_future(key), self._exchange.numbers.next, takes)
        place = (node, key)
        self._questions.setdefault(place, []).append(question)
        until_s, wait_s, tries = self._exchange.loop.time() + patience_s, AGAIN_S, 0
        controller = self._exchange.options.controller
        try:
            while node == controller or node in self.nodes():
                left_s = until_s - self._exchange.loop.time()
                if left_s <= 0:
                    self._exchange.stats.timeouts += 1
                    raise TransferTimeoutError(key, f"{node} does not say that it is deleted")
                self._exchange.send(node, [encode(tries)])
                await asyncio.wait([question.future], timeout=min(wait_s, left_s))
                if question.future.done():
                    return question.future.result()
                wait_s, tries = min(MAX_AGAIN_S, 2 * wait_s), tries + 1
            return None
        finally:
            self._questions[place].remove(question)
            if not self._questions[place]:
                del self._questions[place]
