"""Questions: whether a block is there, without moving it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib.client.exchange import Exchange, fail
from hostlib.protocol import wire
from hostlib.protocol.errors import TransferError, TransferTimeoutError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from hostlib.native.lane import Request
    from hostlib.protocol.transfer import BlockRef


@dataclass(frozen=True, slots=True)
class Found:
    """Place of a block, and the work that waits there."""

    home: str | None
    """The home that holds it; None: a pool on the way does."""
    wait_s: float
    """Seconds until all that was promised there has left."""


@dataclass(slots=True, eq=False)
class Question:
    """About one block."""

    lookup: Lookup
    block: BlockRef
    homes: list[str]
    silent_home: bool
    future: asyncio.Future[Found | None]
    """None: nobody has it."""
    until_s: float
    """Time at which it has taken as long as it may."""
    listed: int
    """The epoch of the list of members by which its homes were chosen."""
    first_sequence: int
    """A number that no earlier question has."""
    asks_everyone: bool = False
    """Whether all storage nodes are asked, as one of them goes by another list than this node."""
    busy: set[str] = field(default_factory=set)
    """Homes that could not say yet."""
    is_asked: bool = False
    """Whether anything was sent."""
    doubtful: bool = False
    """Whether homes may have said that it is not there before somebody asked who waits for the answer now."""
    askers: int = 0
    """Number of callers that wait for the answer."""
    request: Request[Question] | None = None

    def presence_known(self) -> bool | None:
        """Return whether the block is there; None while that is not known, and if a home that may hold it is
        silent."""
        if not self.future.done() or self.future.cancelled() or self.future.exception() is not None:
            return None
        return self.future.result() is not None

    def datagrams(self, requests: Sequence[Request[Question]], sequence: int, now_s: float) -> list[bytes]:
        """Return the STAT."""
        self.is_asked = True
        block = self.block
        message = wire.Message(
            wire.OP_STAT, block.key, 0, 0, self.lookup.flags, depth=block.depth,
            chain_blocks=block.chain_blocks, parent=block.parent, tenant=self.lookup.tenant,
        )  # fmt: skip
        numbers = range(sequence, sequence + len(requests))
        return [wire.encode(message._replace(sequence=number & 0xFFFFFFFF)) for number in numbers]

    def retried(self, request: Request[Question]) -> None:
        """Do nothing more when it is asked again."""

    def gave_up(self, request: Request[Question]) -> None:
        """Ask the next home: no answer came before the deadline."""
        self.silent(self.homes[0])

    def overdue(self) -> None:
        """End the question, which has taken as long as it may."""
        self.lookup.finish(self, TransferTimeoutError(self.block.key, "no answer in time"))

    def silent(self, home: str) -> None:
        """Ask the next home if it is the one asked."""
        if home == self.homes[0]:
            self.silent_home = True
            self.lookup.next_home(self)
        elif home in self.homes:
            self.homes.remove(home)
            self.silent_home = True

    def fallen(self, home: str) -> None:
        """Go on as a question by the new list would, if the home asked is down by that list and there is
        another one."""
        if home != self.homes[0]:
            return
        homes, silent = self.lookup.homes_of(self.block)
        if any(other != home for other in homes):
            self.silent_home = silent
            self.homes = [home, *sorted(homes, key=home.__eq__)]
            self.lookup.next_home(self)


class Lookup:
    """Questions without an answer yet, by key."""

    def __init__(self, exchange: Exchange, tenant: int) -> None:
        self.active: dict[bytes, Question] = {}
        self.tenant = tenant
        self.flags = wire.FLAG_BYPASS if exchange.options.asks_past_pool else 0
        """Of each STAT."""
        self._exchange = exchange
        exchange.handlers[wire.OP_FOUND] = self._on_found

    def homes_of(self, block: BlockRef) -> tuple[list[str], bool]:
        """Return the homes to ask about a block by now, and whether one that may hold it is left out."""
        return self._exchange.health.homes_of(block)

    def ask(self, block: BlockRef) -> Question:
        """Return the question about a block, new or already asked; its future raises a TransferError if
        nobody answers. Whoever asks leaves it in the end."""
        question = self.active.get(block.key) or self._open(block)
        question.doubtful = question.doubtful or question.is_asked
        question.askers += 1
        return question

    def leave(self, question: Question) -> None:
        """Leave a question whose answer a caller does not want any more; without callers it ends."""
        question.askers -= 1
        if not question.askers and not question.future.done():
            self.finish(question)

    def _open(self, block: BlockRef) -> Question:
        homes, silent = self._exchange.health.homes_of(block)
        until_s = self._exchange.loop.time() + self._exchange.options.longest_s(1)
        future, listed = self._exchange.new_future(block.key), self._exchange.members.epoch
        first = self._exchange.numbers.next
        question = Question(self, block, homes, silent, future, until_s, listed, first)
        self.active[block.key] = question
        self._exchange.request_owners[question] = None
        if homes:
            self._send(question)
        else:
            self._nowhere(question)
        return question

    def on_not_found(self, message: wire.Message, address: str, now_s: float) -> None:
        """Take the answer of a home that lacks the block; of one write (content) it may have another."""
        question = self._asked_there(message, address)
        if question is not None and not message.content:
            self._settle(question, message, now_s)
            self.next_home(question)

    def on_refused(self, message: wire.Message, address: str, now_s: float) -> None:
        """Ask the homes that know what was deleted first, and the home asked, which does not yet, again after
        a while."""
        question = self._asked_there(message, address)
        if question is None or message.generation != wire.REFUSED_BUSY:
            return
        if self._exchange.passes_busy(question, address):
            self._settle(question, message, now_s)
            self.next_home(question)

    def finish(self, question: Question, error: TransferError | None = None) -> None:
        """End a question with an error, or with None because nobody wants to know any more."""
        self.active.pop(question.block.key, None)
        self._exchange.request_owners.pop(question, None)
        if question.request is not None:
            self._exchange.drop([question.request])
        if error is not None:
            fail(question.future, error)
        elif not question.future.done():
            question.future.cancel()

    def next_home(self, question: Question) -> None:
        """Ask the next home: the one asked does not have the block, or does not answer."""
        question.homes.pop(0)
        if question.request is not None:
            self._exchange.drop([question.request])
        if question.homes:
            self._send(question)
        else:
            self._nowhere(question)

    def _send(self, question: Question) -> None:
        question.request = self._exchange.core.Request(question, 0)
        self._exchange.ask(self._exchange.lane(question.homes[0], wire.OP_STAT), [question.request])

    def _nowhere(self, question: Question) -> None:
        block = question.block
        others = self._exchange.others_to_ask(question)
        if others is not None:
            self._once_more(question, *others)
        elif question.silent_home:
            self.finish(question, TransferTimeoutError(block.key, "a home that may hold it does not answer"))
        elif question.doubtful:
            self._once_more(question, *self.homes_of(block))
        else:
            self._answer(question, None)

    def _once_more(self, question: Question, homes: list[str], silent: bool) -> None:
        """Ask these homes."""
        question.homes, question.silent_home = homes, silent
        question.busy.clear()
        question.doubtful, question.first_sequence = False, self._exchange.numbers.next
        question.listed = self._exchange.members.epoch
        if homes:
            self._send(question)
        else:
            self._nowhere(question)

    def _on_found(self, message: wire.Message, address: str, now_s: float) -> None:
        question = self._asked_there(message, address)
        if question is None:
            self._exchange.stats.late += 1
            return
        self._settle(question, message, now_s)
        if message.flags & wire.FLAG_FROM_POOL:
            self._answer(question, Found(None, 0.0))
        else:
            promised_ms = message.recompute_ms  # the field's meaning in a FOUND
            self._answer(question, Found(address, max(message.backlog_ms, promised_ms) / 1000))

    def _asked_there(self, message: wire.Message, address: str) -> Question | None:
        question = self.active.get(message.key)
        if question is None or message.tenant != self.tenant or question.homes[0] != address:
            return None
        return None if wire.is_of_before(message, question.first_sequence) else question

    def _settle(self, question: Question, message: wire.Message, now_s: float) -> None:
        if question.request is not None and not question.request.done:
            self._exchange.settle(question.request, message, now_s)

    def _answer(self, question: Question, found: Found | None) -> None:
        self.active.pop(question.block.key, None)
        self._exchange.request_owners.pop(question, None)
        if not question.future.done():
            question.future.set_result(found)
