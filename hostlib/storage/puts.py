"""PUTs at a storage node: kept, and acknowledged when the block is as safe as it is to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostlib import native
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.storage.replies import ECHOED_FLAGS, in_ms
from hostlib.storage.store_options import Kept
from hostlib.storage.waiting_acks import WaitingAcks

if TYPE_CHECKING:
    from hostlib.protocol.errors import DiskError
    from hostlib.storage.joining import Joining
    from hostlib.storage.replies import Replies
    from hostlib.storage.store import BlockStore
    from hostlib.storage.successors import Successors
    from hostlib.transport.transport import Transport


class Puts:
    """`replies` answers for what `store` took, and counts."""

    def __init__(
        self,
        transport: Transport,
        store: BlockStore,
        joining: Joining,
        replies: Replies,
        successors: Successors,
    ) -> None:
        self._transport, self._store, self._joining = transport, store, joining
        self._replies, self._successors = replies, successors
        self._stats = replies.stats
        self._acks = WaitingAcks()
        self._core = native.core()

    def keep(self, address: str, puts: list[bytes], at: int, replies: list[bytes]) -> int:
        """Return how many datagrams from there on are PUTs of one write that were taken at once."""
        core = self._core
        count, begins = core.put_run(puts, at)
        if not count:
            return 0
        first = wire.decode(puts[at])
        backlog_ms = in_ms(self._store.commit_wait_s())
        epoch = self._replies.epoch
        if not self._joining.is_home(first.key):
            self._stats.puts += count
            self._stats.refused += count
            flags = first.flags & (ECHOED_FLAGS | wire.FLAG_RECLAIM)
            core.encode_acks(puts, at, count, flags, 0, epoch, backlog_ms, replies, wire.REFUSED_NOT_HOME)
            return count
        place = Place(first.tenant, first.key)
        if self._joining.doubts(place):
            return 0
        is_new = place not in self._store
        received, others, outcome = self._store.put_run(first, address, puts, at, count)
        count = received + others
        if not count:
            return 0
        if begins < count:
            self._successors.seen(address, first.key, first.depth, first.chain_blocks, first.parent)
        if is_new:
            self._made(place)
        flags = first.flags & wire.FLAG_RECLAIM
        is_new = is_new and not flags
        self._stats.puts += count
        self._stats.reclaims += count * bool(flags)
        core.encode_acks(puts, at, received, flags, 0, epoch, backlog_ms, replies, 0)
        if outcome.kept is Kept.REFUSED:
            last = wire.decode(puts[at + received])
            replies.append(wire.encode(self._replies.refused(last, outcome.reason, backlog_ms)))
        elif outcome.kept is Kept.COMMITTING:
            self._hold_ack(address, wire.decode(puts[at + received]), is_new)
        else:
            held = flags | _held(is_new)
            core.encode_acks(puts, at + received, others, held, outcome.write, epoch, backlog_ms, replies, 0)
        return count

    def answer(self, address: str, message: wire.Message) -> wire.Message | None:
        """Return the reply to a PUT; None while it waits for the disk."""
        if not message.fragment:
            self._successors.seen(address, message.key, message.depth, message.chain_blocks, message.parent)
        self._stats.puts += 1
        flags = message.flags & wire.FLAG_RECLAIM
        self._stats.reclaims += bool(flags)
        backlog_ms = in_ms(self._store.commit_wait_s())
        if not self._joining.is_home(message.key):
            return self._replies.refused(message, wire.REFUSED_NOT_HOME, backlog_ms)
        place = Place(message.tenant, message.key)
        if self._joining.doubts(place):
            return self._replies.refused(message, wire.REFUSED_BUSY, backlog_ms)
        is_new = place not in self._store
        kept, write, reason = self._store.put_fragment(message, address)
        if is_new:
            self._made(place)
        is_new = is_new and not flags  # nothing is new that a switch sent
        if kept is Kept.REFUSED:
            return self._replies.refused(message, reason, backlog_ms)
        if kept is Kept.COMMITTING:
            self._hold_ack(address, message, is_new)
            return None
        if kept is Kept.HELD:
            return self._ack(message, flags | _held(is_new), write, backlog_ms)
        return self._ack(message, flags, message.content, backlog_ms)

    def _made(self, place: Place) -> None:
        """Handle a PUT of a block that was not here; perhaps it is whole now."""
        if place in self._store:
            self._joining.made(place)

    def _hold_ack(self, address: str, message: wire.Message, is_new: bool) -> None:
        """Acknowledge a PUT when the block is on stable storage."""
        place = Place(message.tenant, message.key)
        is_first = self._acks.add(address, message, is_new)
        if is_first is None:
            self._stats.overloaded += 1
        elif is_first:
            self._store.when_safe(place, lambda error: self._on_safe(place, error))

    def _on_safe(self, place: Place, error: DiskError | None) -> None:
        if error is None and place in self._store and not self._store.is_safe(place):
            # Another write: the one that is safe was deleted.
            self._store.when_safe(place, lambda error: self._on_safe(place, error))
            return
        backlog_ms = in_ms(self._store.commit_wait_s())
        found = self._store.find(place)
        for address, message in self._acks.take(place):
            if error is not None or found is None:
                reply = self._replies.refused(message, wire.REFUSED_FULL, backlog_ms)
            else:
                flags = message.flags | wire.FLAG_HELD | wire.FLAG_DURABLE
                reply = self._ack(message, flags, found[1], backlog_ms)
            self._transport.send(address, [wire.encode(reply)])

    def _ack(self, message: wire.Message, flags: int, write: int, backlog_ms: int) -> wire.Message:
        return self._replies.of(message, wire.OP_PUT_ACK, flags, write, message.fragments, backlog_ms)


def _held(is_new: bool) -> int:
    """Return flags of the acknowledgement of a PUT whose block is here now."""
    return wire.FLAG_HELD | (wire.FLAG_CREATED if is_new else 0)
