"""A storage node: the home of blocks, answers what it is asked and keeps what it is given.

It has no secret and believes nobody: what it hands out is what it was given, tags and all, and readers check
it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.errors import DiskError, MalformedError
from hostlib.protocol.hints import Hint
from hostlib.protocol.members import Members, is_later, other_size
from hostlib.protocol.tombstones import LIST_FLAGS, Tombstone, unpacked
from hostlib.storage.committed_work import CommittedWork
from hostlib.storage.expiry import Expiry
from hostlib.storage.gets import Gets
from hostlib.storage.hinted import HintedBlocks
from hostlib.storage.joining import Joining
from hostlib.storage.listing import Listing
from hostlib.storage.puts import Puts
from hostlib.storage.replies import Replies
from hostlib.storage.storage_options import StorageOptions, StorageStats
from hostlib.storage.store import BlockStore
from hostlib.storage.successors import Successors

if TYPE_CHECKING:
    from hostlib.transport.transport import Transport

log = logging.getLogger(__name__)

MAX_WAITING_ORDERS = 4096
"""Answers to DELETEs and lifetimes that wait for the disk; one more is not heard, and who sent it repeats
it."""
MAX_WAITING_RECORDS = 16_384
"""Records that wait for the disk, above which neither is heard: each leaves one."""
_REPLIES = frozenset((wire.OP_VALUE, wire.OP_NOT_FOUND, wire.OP_FOUND, wire.OP_KEYS, wire.OP_REFUSED))


class StorageNode:
    """Answers from `store`."""

    def __init__(
        self,
        transport: Transport,
        store: BlockStore,
        options: StorageOptions | None = None,
        members: Members | None = None,
    ) -> None:
        self.stats = StorageStats()
        self._transport = transport
        self._store = store
        options = options or StorageOptions()
        known = members or Members(0, 1, ())
        self.joining = Joining(transport, store, known, options.address, options.controller)
        self._replies = replies = Replies(self.joining, self.stats)
        self._successors = seen = Successors()
        self._committed_work = work = CommittedWork(options.link_bit_s)
        self._gets = Gets(transport, store, self.joining, replies, seen, work, options)
        self._puts = Puts(transport, store, self.joining, replies, seen)
        self._hinted = HintedBlocks(store, self._gets.reader)
        self._expiry = Expiry(transport, store, self.joining, options.address, options.controller)
        self._orders_waiting = 0
        self._listing = Listing(store, self.joining, self._on_page)
        self._backlogs_ms: dict[int, int] = {}
        """By tenant, for what came last."""
        transport.set_receiver(self._on_datagrams)

    @property
    def members(self) -> Members:
        """Return the newest list of storage nodes."""
        return self.joining.members

    def start(self) -> None:
        """Join the others: copy what was missed, and tell the controller, if there is one, that this node
        lives."""
        self.joining.start()
        self._expiry.start()

    def backlog_ms(self, tenant: int | None = None) -> int:
        """Return how long what a tenant asks for now waits: for the SSD, or on the link for what waits to
        leave."""
        return self._gets.backlog_ms(tenant)

    def set_ssd_rate(self, bytes_per_s: float) -> None:
        """Set the rate of the modelled device in bytes per second; 0 for unlimited."""
        self._gets.reader.bytes_per_s = bytes_per_s

    def learn(self, keys: Sequence[bytes]) -> None:
        """Take what is there from the start, chain by chain, for what follows in a chain."""
        self._successors.learn(keys)

    def close(self) -> None:
        """Read, copy and say nothing any more."""
        self._hinted.close()
        self._expiry.close()
        self._gets.reader.close()
        self._listing.close()
        self.joining.close()

    def crash(self) -> None:
        """Stop as if the machine lost its power: it does nothing any more, not even what it began."""
        self.close()
        self._store.abandon()
        self._transport.set_receiver(lambda address, datagrams: None)

    def _on_datagrams(self, address: str, datagrams: Sequence[wire.Buffer]) -> None:
        replies: list[bytes] = []
        self._backlogs_ms.clear()
        at = 0
        while at < len(datagrams):
            count = self._run(address, datagrams, at, replies)
            if not count:
                count = 1
                replies += self._on_datagram(address, datagrams[at])
            at += count
        if replies:
            self._transport.send(address, replies)

    def _burst_backlog_ms(self, tenant: int) -> int:
        """Return the backlog as `backlog_ms` does, asked of the kernel once for all that came together."""
        backlog_ms = self._backlogs_ms.get(tenant)
        if backlog_ms is None:
            backlog_ms = self._backlogs_ms[tenant] = self._gets.backlog_ms(tenant)
        return backlog_ms

    def _on_datagram(self, address: str, datagram: wire.Buffer) -> list[bytes]:
        try:
            message = wire.decode(datagram)
        except MalformedError as error:
            self._count_malformed(error.reason)
            return []
        backlog_ms = self._burst_backlog_ms(message.tenant)
        if message.op == wire.OP_GET:
            return self._gets.answer(address, message, backlog_ms)
        reply = self._on_other(address, message, backlog_ms)
        return [] if reply is None else [reply]

    def _run(self, address: str, datagrams: Sequence[wire.Buffer], at: int, replies: list[bytes]) -> int:
        """Deal with datagrams from there on; return how many were dealt with at once."""
        op = wire.op_of(datagrams[at])
        if op == wire.OP_GET:
            return self._gets.serve(address, datagrams, at, replies, self._burst_backlog_ms)
        if op == wire.OP_PUT and isinstance(datagrams, list):
            return self._puts.keep(address, datagrams, at, replies)
        return 0

    def _on_other(self, address: str, message: wire.Message, backlog_ms: int) -> bytes | None:
        reply = None
        if message.op == wire.OP_PUT:
            reply = self._puts.answer(address, message)
        elif message.op == wire.OP_STAT:
            if message.flags & wire.FLAG_HINT and message.backlog_ms == Hint.EXPIRE:
                self._on_expire(address, message, backlog_ms)
            else:
                reply = self._on_stat(message, backlog_ms)
        elif message.op == wire.OP_DELETE:
            self._on_delete(address, message)
        elif message.op == wire.OP_LIST and self.members.at(address) is not None:
            self._on_list(address, message)
        elif message.op == wire.OP_MEMBERS:
            self._on_members(message)
        elif message.op == wire.OP_DELETED and self._expiry.on_deleted(address, message):
            pass
        elif message.op not in _REPLIES or not self.joining.catch_up.on_reply(message, address):
            self.stats.unexpected += 1
        return None if reply is None else wire.encode(reply)

    def _on_stat(self, message: wire.Message, backlog_ms: int) -> wire.Message:
        self.stats.stats += 1
        flags = message.flags & (wire.FLAG_BYPASS | wire.FLAG_HINT) if message.flags & wire.FLAG_HINT else 0
        place = Place(message.tenant, message.key)
        is_in_doubt = self.joining.doubts(place)
        if not flags and is_in_doubt:
            return self._replies.refused(message, wire.REFUSED_BUSY, backlog_ms)
        found = self._store.find(place) if not is_in_doubt else None
        if found is None:
            return self._replies.not_found(message, flags, backlog_ms)
        reply = self._replies.of(
            message, wire.OP_FOUND, flags, found[1], wire.fragment_count(found[0]), backlog_ms
        )
        if flags:
            return reply._replace(recompute_ms=self._hinted.take(message))
        return reply._replace(recompute_ms=self._committed_work.wait_ms())  # the field's meaning in a FOUND

    def _on_expire(self, address: str, message: wire.Message, backlog_ms: int) -> None:
        """Delete a write after a time; answer when a power cut does not change that."""
        self.stats.stats += 1
        flags = wire.FLAG_BYPASS | wire.FLAG_HINT
        place = Place(message.tenant, message.key)
        if self.joining.doubts_some or self.joining.doubts(place) or self._is_overloaded():
            return  # a block that may be deleted by now is neither there nor not; who asks does so again
        found = self._store.find(place)

        def answer(op: int, is_done: bool) -> None:
            asked = message.content, message.fragments
            reply = self._replies.of(message, op, flags, *asked, backlog_ms)._replace(recompute_ms=is_done)
            self._transport.send(address, [wire.encode(reply)])

        if found is None or found[1] != message.content:
            answer(wire.OP_NOT_FOUND, False)
            return

        self._orders_waiting += 1

        def done(is_safe: bool) -> None:
            self._orders_waiting -= 1
            answer(wire.OP_FOUND, is_safe)

        self._expiry.begin(address, message, done)

    def _is_overloaded(self) -> bool:
        """Return whether too much waits for the disk to take another order to delete, now or later."""
        waits = self._orders_waiting >= MAX_WAITING_ORDERS
        if waits or self._store.waiting_records >= MAX_WAITING_RECORDS:
            self.stats.overloaded += 1
            return True
        return False

    def _on_delete(self, address: str, message: wire.Message) -> None:
        """Forget a write, and answer when that is as safe as the block was."""
        self.stats.deletes += 1
        if self._is_overloaded():
            return
        stone = Tombstone(Place(message.tenant, message.key), message.content, message.tag)
        is_passed_on = message.parent and self.members.at(address) is not None
        source = unpacked(message.parent.to_bytes(4, "big")) if is_passed_on else address
        if not message.content or not self._store.delete(stone, source=source):
            refused = self._replies.refused(message, wire.REFUSED_PROOF, 0)
            self._transport.send(address, [wire.encode(refused)])
            return

        self._orders_waiting += 1

        def done(error: DiskError | None) -> None:
            self._orders_waiting -= 1
            if error is not None:
                reply = self._replies.refused(message, wire.REFUSED_FULL, 0)
            else:
                reply = self._replies.of(message, wire.OP_DELETED, 0, message.content, message.fragments, 0)
            self._transport.send(address, [wire.encode(reply)])

        self._store.graveyard.when_safe(stone, done)

    def _on_list(self, address: str, message: wire.Message) -> None:
        """Answer a LIST, unless the peer knows a newer list of members: by this one, its blocks may be
        another's.

        It asks again.
        """
        self.stats.lists += 1
        if not is_later(message.generation, self.members.epoch):
            self._listing.ask(address, message)

    def _on_page(self, address: str, message: wire.Message, page: bytes, fresh: int) -> None:
        flags = message.flags & LIST_FLAGS
        flags |= wire.FLAG_HELD if flags and not self.joining.doubts_some else 0
        reply = self._replies.of(message, wire.OP_KEYS, flags, fresh, 0, 0)
        self._transport.send(address, [wire.encode(reply._replace(value=page))])

    def _on_members(self, message: wire.Message) -> None:
        if why := other_size(message):
            if "size" not in self.stats.malformed:
                log.error("the controller's list is not followed: %s", why)
            self._count_malformed("size")
            return
        try:
            members = Members.decode(message.value)
        except MalformedError as error:
            self._count_malformed(error.reason)
            return
        self.joining.follow(members)
        if message.sequence:
            self.joining.probed(message.sequence)

    def _count_malformed(self, reason: str) -> None:
        self.stats.malformed[reason] = self.stats.malformed.get(reason, 0) + 1
