"""Hints to the homes of blocks and to the controller, for its pool (`hostlib.protocol.hints`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hostlib.protocol import wire
from hostlib.protocol.errors import TransferTimeoutError
from hostlib.protocol.hints import MAX_LIFETIME_S, MAX_RETAIN_S, OF_POOLS, Hint, HintOutcome

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from hostlib.client.deletion import Deletions
    from hostlib.client.exchange import Exchange
    from hostlib.protocol.transfer import BlockRef

AT_ONCE: Final = 64
"""Blocks that are hinted at; more wait for their turn."""
PATIENCE_S: Final = 2.0
"""Seconds that a home may take for its answer."""
POOL_PATIENCE_S: Final = 0.5
"""Seconds that the controller may take: it answers no more hints than it hears."""
AGAIN_S: Final = 0.1
MAX_AGAIN_S: Final = 0.4
"""A hint is sent again after the first time, then after twice as long each time, up to the second."""


class Hints:
    """The hints of a client that are under way."""

    def __init__(self, exchange: Exchange, tenant: int) -> None:
        self._exchange, self._tenant = exchange, tenant
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting: dict[tuple[str, bytes, int], asyncio.Future[HintOutcome]] = {}
        """By home, key and sequence number."""

    async def give(self, block: BlockRef, hint: Hint, seconds: int = 0) -> HintOutcome:
        """Tell all homes of a block, and the controller; return the best of their answers. ValueError for an
        impossible time."""
        if not 0 <= seconds <= MAX_RETAIN_S:
            raise ValueError(f"a hint is for 0 to {MAX_RETAIN_S} seconds, not {seconds}")
        said = self._message(block)._replace(backlog_ms=hint, recompute_ms=seconds)
        async with self._turns:
            homes, _ = self._exchange.health.homes_of(block)
            outcomes = await asyncio.gather(
                *(self._tell(home, said) for home in homes), *self._tell_pool(said)
            )
        return max(outcomes, default=HintOutcome.NO_ANSWER)

    def _tell_pool(self, said: wire.Message) -> list[Coroutine[None, None, HintOutcome]]:
        """Tell the controller, if there is one that has been heard, of what pools take."""
        controller = self._exchange.options.controller
        if controller is None or not self._exchange.members.epoch or said.backlog_ms not in OF_POOLS:
            return []

        async def tell() -> HintOutcome:
            if await self._tell(controller, said, POOL_PATIENCE_S) is not HintOutcome.DONE:
                return HintOutcome.NO_ANSWER  # what is not in the pool may well be at a home
            self._exchange.stats.pools_hinted += 1
            return HintOutcome.DONE

        return [tell()]

    async def expire(self, block: BlockRef, seconds: int, deletions: Deletions) -> HintOutcome:
        """Have a block deleted after a time; return the worst answer of the homes that hold it.

        A home that is down may hold it if no other does. Raises ValueError for an impossible time.
        """
        if not 0 < seconds <= MAX_LIFETIME_S:
            raise ValueError(f"a block lives for 1 to {MAX_LIFETIME_S} seconds, not {seconds}")

        async def tell(home: str) -> HintOutcome:
            try:
                held = await deletions.write_at(block, home)
            except TransferTimeoutError:
                return HintOutcome.NO_ANSWER
            if held is None:
                return HintOutcome.NOT_FOUND
            stone, fragments = held
            said = self._message(block)._replace(
                backlog_ms=Hint.EXPIRE, generation=seconds, content=stone.write, tag=stone.proof,
                fragments=fragments,
            )  # fmt: skip
            return await self._tell(home, said)

        async with self._turns:
            homes, silent = self._exchange.health.homes_of(block)
            if silent and self._exchange.members.epoch:  # who does not answer will be down, or has to be told
                homes = deletions.nodes()
            outcomes = await asyncio.gather(*map(tell, homes))
        holders = [outcome for outcome in outcomes if outcome is not HintOutcome.NOT_FOUND]
        all_said = outcomes and not self._exchange.members.down_homes(block.key)
        return min(holders, default=HintOutcome.NOT_FOUND if all_said else HintOutcome.NO_ANSWER)

    def on_reply(self, message: wire.Message, address: str) -> None:
        """Take a FOUND or NOT_FOUND with the flag HINT."""
        answer = self._waiting.get((address, message.key, message.sequence))
        if answer is None or answer.done() or message.tenant != self._tenant:
            return
        if message.op == wire.OP_NOT_FOUND:
            answer.set_result(HintOutcome.NOT_FOUND)
        else:
            answer.set_result(HintOutcome.DONE if message.recompute_ms else HintOutcome.REFUSED)

    def close(self) -> None:
        """Wait for nothing any more; who does is cancelled."""
        for answer in self._waiting.values():
            answer.cancel()

    def _message(self, block: BlockRef) -> wire.Message:
        return wire.Message(
            wire.OP_STAT, block.key, 0, 0, wire.FLAG_BYPASS | wire.FLAG_HINT, tenant=self._tenant,
            epoch=self._exchange.members.epoch & 0xFF,
        )  # fmt: skip

    async def _tell(self, home: str, said: wire.Message, patience_s: float = PATIENCE_S) -> HintOutcome:
        message = said._replace(sequence=self._exchange.numbers.take())
        place = (home, message.key, message.sequence)
        answer = self._waiting[place] = self._exchange.loop.create_future()
        wait_s, until_s = AGAIN_S, self._exchange.loop.time() + patience_s
        try:
            while not answer.done() and (left_s := until_s - self._exchange.loop.time()) > 0:
                self._exchange.send(home, [wire.encode(message)])
                await asyncio.wait([answer], timeout=min(wait_s, left_s))
                wait_s = min(MAX_AGAIN_S, 2 * wait_s)
            return answer.result() if answer.done() else HintOutcome.NO_ANSWER
        finally:
            del self._waiting[place]
