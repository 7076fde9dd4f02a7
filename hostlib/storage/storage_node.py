"""A storage node: the home of blocks, answers what it is asked and keeps what it is given.

It has no secret and believes nobody: what it hands out is what it was given, tags and all, and readers check
it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostlib import native
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.errors import DiskError, MalformedError, UnreadableError
from hostlib.protocol.hints import Hint
from hostlib.protocol.members import Members, is_later, other_size
from hostlib.protocol.tombstones import LIST_FLAGS, Tombstone, unpacked
from hostlib.storage.committed_work import CommittedWork
from hostlib.storage.expiry import Expiry
from hostlib.storage.hinted import HintedBlocks
from hostlib.storage.joining import Joining
from hostlib.storage.listing import Listing
from hostlib.storage.ssd_reader import SsdReader
from hostlib.storage.storage_options import StorageOptions, StorageStats
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import Kept
from hostlib.storage.successors import Successors
from hostlib.storage.waiting_acks import WaitingAcks
from hostlib.storage.waiting_gets import WaitingGets

if TYPE_CHECKING:
    from hostlib.transport.transport import Transport

log = logging.getLogger(__name__)

MAX_WAITING_ORDERS = 4096
"""Answers to DELETEs and lifetimes that wait for the disk; one more is not heard, and who sent it repeats
it."""
MAX_WAITING_RECORDS = 16_384
"""Records that wait for the disk, above which neither is heard: each leaves one."""
_ECHOED_FLAGS = wire.FLAG_BYPASS | wire.FLAG_FILL | wire.FLAG_REPAIR
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
        self._options = options = options or StorageOptions()
        known = members or Members(0, 1, ())
        self.joining = Joining(transport, store, known, options.address, options.controller)
        self._successors = Successors()
        self._committed_work = CommittedWork(options.link_bit_s)
        self._reader = SsdReader(store, self._options.ssd_bytes_per_s, self._on_read)
        self._hinted = HintedBlocks(store, self._reader)
        self._expiry = Expiry(transport, store, self.joining, options.address, options.controller)
        self._gets = WaitingGets(self._reader)
        self._acks = WaitingAcks()
        self._orders_waiting = 0
        self._listing = Listing(store, self.joining, self._on_page)
        self._core = native.core()
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
        link_bit_s = self._options.link_bit_s
        link_s = 8 * self._transport.queued_bytes / link_bit_s if link_bit_s else 0.0
        return _in_ms(max(link_s, self._reader.wait_s(tenant)))

    def set_ssd_rate(self, bytes_per_s: float) -> None:
        """From now on the modelled device reads at this rate, 0 for unlimited."""
        self._reader.bytes_per_s = bytes_per_s

    def learn(self, keys: Sequence[bytes]) -> None:
        """Take what is there from the start, chain by chain, for what follows in a chain."""
        self._successors.learn(keys)

    def close(self) -> None:
        """Read, copy and say nothing any more."""
        self._hinted.close()
        self._expiry.close()
        self._reader.close()
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
        """As `backlog_ms`, asked of the kernel once for all that came together."""
        backlog_ms = self._backlogs_ms.get(tenant)
        if backlog_ms is None:
            backlog_ms = self._backlogs_ms[tenant] = self.backlog_ms(tenant)
        return backlog_ms

    def _on_datagram(self, address: str, datagram: wire.Buffer) -> list[bytes]:
        try:
            message = wire.decode(datagram)
        except MalformedError as error:
            self._count_malformed(error.reason)
            return []
        backlog_ms = self._burst_backlog_ms(message.tenant)
        if message.op == wire.OP_GET:
            return self._on_get(address, message, backlog_ms)
        reply = self._on_other(address, message, backlog_ms)
        return [] if reply is None else [reply]

    def _run(self, address: str, datagrams: Sequence[wire.Buffer], at: int, replies: list[bytes]) -> int:
        """How many datagrams from there on were dealt with at once."""
        op = wire.op_of(datagrams[at])
        if op == wire.OP_GET:
            return self._serve(address, datagrams, at, replies)
        if op == wire.OP_PUT and isinstance(datagrams, list):
            return self._keep(address, datagrams, at, replies)
        return 0

    def _keep(self, address: str, puts: list[bytes], at: int, replies: list[bytes]) -> int:
        """How many datagrams from there on are PUTs of one write that were taken at once."""
        core = self._core
        count, begins = core.put_run(puts, at)
        if not count:
            return 0
        first = wire.decode(puts[at])
        backlog_ms = _in_ms(self._store.commit_wait_s())
        epoch = self.members.epoch & 0xFF
        if not self.joining.is_home(first.key):
            self.stats.puts += count
            self.stats.refused += count
            flags = first.flags & (_ECHOED_FLAGS | wire.FLAG_RECLAIM)
            core.encode_acks(puts, at, count, flags, 0, epoch, backlog_ms, replies, wire.REFUSED_NOT_HOME)
            return count
        place = Place(first.tenant, first.key)
        if self.joining.doubts(place):
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
        self.stats.puts += count
        self.stats.reclaims += count * bool(flags)
        core.encode_acks(puts, at, received, flags, 0, epoch, backlog_ms, replies, 0)
        if outcome.kept is Kept.REFUSED:
            last = wire.decode(puts[at + received])
            replies.append(wire.encode(self._refuse(last, outcome.reason, backlog_ms)))
        elif outcome.kept is Kept.COMMITTING:
            self._hold_ack(address, wire.decode(puts[at + received]), is_new)
        else:
            held = flags | _held(is_new)
            core.encode_acks(puts, at + received, others, held, outcome.write, epoch, backlog_ms, replies, 0)
        return count

    def _serve(self, address: str, datagrams: Sequence[wire.Buffer], at: int, replies: list[bytes]) -> int:
        """How many datagrams from there on were answered at once: GETs of one fragment, in DRAM."""
        if self.joining.doubts_some or len(self.joining.missed.unsure):
            return 0
        epoch = self.members.epoch & 0xFF
        served = self._store.serve(datagrams, at, epoch, self._burst_backlog_ms, replies)
        if served is None:
            return 0
        count, retries, bypasses, repairs, begun = served
        stats = self.stats
        stats.gets += count
        stats.values += count
        stats.retries += retries
        stats.bypasses += bypasses
        stats.repairs += repairs
        for fragments, key, *place in begun:
            self._committed_work.add(address, fragments)
            self._successors.seen(address, key, *place)
        return count

    def _on_other(self, address: str, message: wire.Message, backlog_ms: int) -> bytes | None:
        reply = None
        if message.op == wire.OP_PUT:
            reply = self._on_put(address, message)
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

    def _on_get(self, address: str, message: wire.Message, backlog_ms: int) -> list[bytes]:
        self._count_get(message.flags)
        if not message.fragment:
            self._successors.seen(address, message.key, message.depth, message.chain_blocks, message.parent)
        place = Place(message.tenant, message.key)
        if self.joining.doubts(place):
            return [wire.encode(self._refuse(message, wire.REFUSED_BUSY, backlog_ms))]
        if self._store.on_ssd_only(place):
            if self._wait(address, place, message):
                return []
            self.stats.overloaded += 1
            return [wire.encode(self._refuse(message, wire.REFUSED_BUSY, backlog_ms))]
        return self._answer(address, place, message, backlog_ms)

    def _wait(self, address: str, place: Place, message: wire.Message) -> bool:
        """The GET waits for its block, and what follows that in the chain is read next; False if too much
        waits."""
        is_first = self._gets.add(address, message)
        if is_first:
            behind = min(self._options.read_ahead_blocks, message.chain_blocks - message.depth - 1)
            following = self._successors.rest(place.key, behind)
            self._reader.read_ahead(Place(place.tenant, key) for key in following)
        return is_first is not None

    def _on_read(self, place: Place, error: UnreadableError | None) -> None:
        """The block is in DRAM, or can't be had from the disk: then it is copied from another home."""
        backlog_ms = self.backlog_ms(place.tenant)
        waiting = self._gets.take(place)
        if error is not None:
            self.stats.unreadable += 1
            self.joining.repair(place)
        why_not = wire.REFUSED_UNREADABLE if error is not None else 0
        changed = error is None and self._store.on_ssd_only(place)
        if changed or self.joining.doubts(place):
            why_not = wire.REFUSED_BUSY
        for address, message in waiting:
            if changed and self._wait(address, place, message):
                continue  # for what took its place while it was read
            if why_not:
                replies = [wire.encode(self._refuse(message, why_not, backlog_ms))]
            else:
                replies = self._answer(address, place, message, backlog_ms)
            self._transport.send(address, replies)

    def _answer(self, address: str, place: Place, message: wire.Message, backlog_ms: int) -> list[bytes]:
        """The replies to a GET, encoded: several to a switch's own, for its slots."""
        block = self._store.get(place)
        flags = message.flags & _ECHOED_FLAGS
        if block is not None:
            held = block.fragments
            if _is_of(message, held, block.write):
                if not message.fragment:
                    self._committed_work.add(address, held)
                behind = held if message.flags & wire.FLAG_FILL else message.fragment + 1
                wanted = range(message.fragment, behind)
                self.stats.values += len(wanted)
                epoch = self.members.epoch & 0xFF
                said = flags, held, block.write, epoch, backlog_ms
                return [
                    wire.encode_value(message, at, *said, block.tag(at), block.value(at)) for at in wanted
                ]
            self.stats.other_writes += 1
        self.stats.not_found += 1
        asked = message.content, message.fragments
        return [wire.encode(self._reply(message, wire.OP_NOT_FOUND, flags, *asked, backlog_ms))]

    def _on_stat(self, message: wire.Message, backlog_ms: int) -> wire.Message:
        self.stats.stats += 1
        flags = message.flags & (wire.FLAG_BYPASS | wire.FLAG_HINT) if message.flags & wire.FLAG_HINT else 0
        place = Place(message.tenant, message.key)
        is_in_doubt = self.joining.doubts(place)
        if not flags and is_in_doubt:
            return self._refuse(message, wire.REFUSED_BUSY, backlog_ms)
        found = self._store.find(place) if not is_in_doubt else None
        if found is None:
            asked = message.content, message.fragments
            return self._reply(message, wire.OP_NOT_FOUND, flags, *asked, backlog_ms)
        reply = self._reply(
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
            reply = self._reply(message, op, flags, *asked, backlog_ms)._replace(recompute_ms=is_done)
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
        """Whether too much waits for the disk to hear of one more that is to be deleted, now or later."""
        waits = self._orders_waiting >= MAX_WAITING_ORDERS
        if waits or self._store.waiting_records >= MAX_WAITING_RECORDS:
            self.stats.overloaded += 1
            return True
        return False

    def _on_put(self, address: str, message: wire.Message) -> wire.Message | None:
        if not message.fragment:
            self._successors.seen(address, message.key, message.depth, message.chain_blocks, message.parent)
        self.stats.puts += 1
        flags = message.flags & wire.FLAG_RECLAIM
        self.stats.reclaims += bool(flags)
        backlog_ms = _in_ms(self._store.commit_wait_s())
        if not self.joining.is_home(message.key):
            return self._refuse(message, wire.REFUSED_NOT_HOME, backlog_ms)
        place = Place(message.tenant, message.key)
        if self.joining.doubts(place):
            return self._refuse(message, wire.REFUSED_BUSY, backlog_ms)
        is_new = place not in self._store
        kept, write, reason = self._store.put_fragment(message, address)
        if is_new:
            self._made(place)
        is_new = is_new and not flags  # nothing is new that a switch sent
        if kept is Kept.REFUSED:
            return self._refuse(message, reason, backlog_ms)
        if kept is Kept.COMMITTING:
            self._hold_ack(address, message, is_new)
            return None
        if kept is Kept.HELD:
            return self._ack(message, flags | _held(is_new), write, backlog_ms)
        return self._ack(message, flags, message.content, backlog_ms)

    def _on_delete(self, address: str, message: wire.Message) -> None:
        """Forget a write, and answer when that is as safe as the block was."""
        self.stats.deletes += 1
        if self._is_overloaded():
            return
        stone = Tombstone(Place(message.tenant, message.key), message.content, message.tag)
        is_passed_on = message.parent and self.members.at(address) is not None
        source = unpacked(message.parent.to_bytes(4, "big")) if is_passed_on else address
        if not message.content or not self._store.delete(stone, source=source):
            self._transport.send(address, [wire.encode(self._refuse(message, wire.REFUSED_PROOF, 0))])
            return

        self._orders_waiting += 1

        def done(error: DiskError | None) -> None:
            self._orders_waiting -= 1
            if error is not None:
                reply = self._refuse(message, wire.REFUSED_FULL, 0)
            else:
                reply = self._reply(message, wire.OP_DELETED, 0, message.content, message.fragments, 0)
            self._transport.send(address, [wire.encode(reply)])

        self._store.graveyard.when_safe(stone, done)

    def _made(self, place: Place) -> None:
        """A PUT came for a block that was not here; perhaps it is whole now."""
        if place in self._store:
            self.joining.made(place)

    def _hold_ack(self, address: str, message: wire.Message, is_new: bool) -> None:
        """Acknowledge a PUT when the block is on stable storage."""
        place = Place(message.tenant, message.key)
        is_first = self._acks.add(address, message, is_new)
        if is_first is None:
            self.stats.overloaded += 1
        elif is_first:
            self._store.when_safe(place, lambda error: self._on_safe(place, error))

    def _on_safe(self, place: Place, error: DiskError | None) -> None:
        if error is None and self._store.is_waiting(place):  # another write: the one that is safe was deleted
            self._store.when_safe(place, lambda error: self._on_safe(place, error))
            return
        backlog_ms = _in_ms(self._store.commit_wait_s())
        found = self._store.find(place)
        for address, message in self._acks.take(place):
            if error is not None or found is None:
                reply = self._refuse(message, wire.REFUSED_FULL, backlog_ms)
            else:
                flags = message.flags | wire.FLAG_HELD | wire.FLAG_DURABLE
                reply = self._ack(message, flags, found[1], backlog_ms)
            self._transport.send(address, [wire.encode(reply)])

    def _ack(self, message: wire.Message, flags: int, write: int, backlog_ms: int) -> wire.Message:
        return self._reply(message, wire.OP_PUT_ACK, flags, write, message.fragments, backlog_ms)

    def _refuse(self, message: wire.Message, reason: int, backlog_ms: int) -> wire.Message:
        self.stats.refused += 1
        echoed = message.flags & (_ECHOED_FLAGS | wire.FLAG_RECLAIM)
        asked = message.content, message.fragments
        reply = self._reply(message, wire.OP_REFUSED, echoed, *asked, backlog_ms)
        return reply._replace(generation=reason)

    def _on_list(self, address: str, message: wire.Message) -> None:
        """Not answered where who asks knows a newer list of members: by this one, its blocks may be
        another's. It asks again."""
        self.stats.lists += 1
        if not is_later(message.generation, self.members.epoch):
            self._listing.ask(address, message)

    def _on_page(self, address: str, message: wire.Message, page: bytes, fresh: int) -> None:
        flags = message.flags & LIST_FLAGS
        flags |= wire.FLAG_HELD if flags and not self.joining.doubts_some else 0
        reply = self._reply(message, wire.OP_KEYS, flags, fresh, 0, 0)
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

    def _reply(
        self, message: wire.Message, op: int, flags: int, write: int, fragments: int, backlog_ms: int
    ) -> wire.Message:
        """A reply echoes what says which fragment it is, and who asked in which order."""
        return wire.Message(
            op, message.key, message.fragment, fragments, flags, 0, message.sequence, message.depth,
            message.chain_blocks, message.parent, backlog_ms, message.recompute_ms, message.tenant, write,
            (0, 0, 0), self.members.epoch & 0xFF,
        )  # fmt: skip

    def _count_malformed(self, reason: str) -> None:
        self.stats.malformed[reason] = self.stats.malformed.get(reason, 0) + 1

    def _count_get(self, flags: int) -> None:
        self.stats.gets += 1
        if not flags:
            return
        self.stats.retries += bool(flags & wire.FLAG_RETRY)
        self.stats.bypasses += bool(flags & wire.FLAG_BYPASS)
        self.stats.repairs += bool(flags & wire.FLAG_REPAIR)
        self.stats.fills += bool(flags & wire.FLAG_FILL)


def _held(is_new: bool) -> int:
    """Flags of the acknowledgement of a PUT whose block is here now."""
    return wire.FLAG_HELD | (wire.FLAG_CREATED if is_new else 0)


def _is_of(message: wire.Message, fragments: int, write: int) -> bool:
    """Whether a GET may be answered from a block of so many fragments, of this write."""
    return message.content in (0, write) and message.fragments in (0, fragments)


def _in_ms(wait_s: float) -> int:
    """Return a wait as messages carry it."""
    return min(0xFFFF, round(1000 * wait_s))
