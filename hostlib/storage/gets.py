"""GETs at a storage node: answered from DRAM, or when the disk has given the block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.storage.replies import ECHOED_FLAGS, in_ms
from hostlib.storage.ssd_reader import SsdReader
from hostlib.storage.waiting_gets import WaitingGets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlib.protocol.errors import UnreadableError
    from hostlib.storage.committed_work import CommittedWork
    from hostlib.storage.joining import Joining
    from hostlib.storage.replies import Replies
    from hostlib.storage.storage_options import StorageOptions
    from hostlib.storage.store import BlockStore
    from hostlib.storage.successors import Successors
    from hostlib.transport.transport import Transport


class Gets:
    """`replies` answers what `store` holds, and counts."""

    def __init__(
        self,
        transport: Transport,
        store: BlockStore,
        joining: Joining,
        replies: Replies,
        successors: Successors,
        committed_work: CommittedWork,
        options: StorageOptions,
    ) -> None:
        self.reader = SsdReader(store, options.ssd_bytes_per_s, self._on_read)
        self._transport, self._store, self._joining = transport, store, joining
        self._replies, self._successors, self._committed_work = replies, successors, committed_work
        self._stats = replies.stats
        self._read_ahead_blocks = options.read_ahead_blocks
        self._link_bit_s = options.link_bit_s
        self._waiting = WaitingGets(self.reader)

    def backlog_ms(self, tenant: int | None = None) -> int:
        """See `StorageNode`."""
        link_s = 8 * self._transport.queued_bytes / self._link_bit_s if self._link_bit_s else 0.0
        return in_ms(max(link_s, self.reader.wait_s(tenant)))

    def serve(
        self,
        address: str,
        datagrams: Sequence[wire.Buffer],
        at: int,
        replies: list[bytes],
        backlog_ms: Callable[[int], int],
    ) -> int:
        """Return how many datagrams from there on were answered at once: GETs of one fragment, in DRAM.

        `backlog_ms(tenant)`: how long what a tenant asks for now waits.
        """
        if self._joining.doubts_some or len(self._joining.missed.unsure):
            return 0
        epoch = self._replies.epoch
        served = self._store.serve(datagrams, at, epoch, backlog_ms, replies)
        if served is None:
            return 0
        count, retries, bypasses, repairs, begun = served
        stats = self._stats
        stats.gets += count
        stats.values += count
        stats.retries += retries
        stats.bypasses += bypasses
        stats.repairs += repairs
        for fragments, key, *place in begun:
            self._committed_work.add(address, fragments)
            self._successors.seen(address, key, *place)
        return count

    def answer(self, address: str, message: wire.Message, backlog_ms: int) -> list[bytes]:
        """Return the replies to a GET, encoded; none while it waits for the disk."""
        self._count_get(message.flags)
        if not message.fragment:
            self._successors.seen(address, message.key, message.depth, message.chain_blocks, message.parent)
        place = Place(message.tenant, message.key)
        if self._joining.doubts(place):
            return [wire.encode(self._replies.refused(message, wire.REFUSED_BUSY, backlog_ms))]
        if self._store.on_ssd_only(place):
            if self._wait(address, place, message):
                return []
            self._stats.overloaded += 1
            return [wire.encode(self._replies.refused(message, wire.REFUSED_BUSY, backlog_ms))]
        return self._answer(address, place, message, backlog_ms)

    def _wait(self, address: str, place: Place, message: wire.Message) -> bool:
        """Have a GET wait for its block, and read ahead what follows in the chain; return False if too much
        waits."""
        is_first = self._waiting.add(address, message)
        if is_first:
            behind = min(self._read_ahead_blocks, message.chain_blocks - message.depth - 1)
            following = self._successors.rest(place.key, behind)
            self.reader.read_ahead(Place(place.tenant, key) for key in following)
        return is_first is not None

    def _on_read(self, place: Place, error: UnreadableError | None) -> None:
        """Answer what waits for a block that is in DRAM now, or have it copied from another home if the disk
        can't give it."""
        backlog_ms = self.backlog_ms(place.tenant)
        waiting = self._waiting.take(place)
        if error is not None:
            self._stats.unreadable += 1
            self._joining.repair(place)
        why_not = wire.REFUSED_UNREADABLE if error is not None else 0
        changed = error is None and self._store.on_ssd_only(place)
        if changed or self._joining.doubts(place):
            why_not = wire.REFUSED_BUSY
        for address, message in waiting:
            if changed and self._wait(address, place, message):
                continue  # for what took its place while it was read
            if why_not:
                replies = [wire.encode(self._replies.refused(message, why_not, backlog_ms))]
            else:
                replies = self._answer(address, place, message, backlog_ms)
            self._transport.send(address, replies)

    def _answer(self, address: str, place: Place, message: wire.Message, backlog_ms: int) -> list[bytes]:
        """Return the replies to a GET, encoded: several to a switch's own, for its slots."""
        block = self._store.get(place)
        flags = message.flags & ECHOED_FLAGS
        if block is not None:
            held = block.fragments
            if _is_of(message, held, block.write):
                if not message.fragment:
                    self._committed_work.add(address, held)
                behind = held if message.flags & wire.FLAG_FILL else message.fragment + 1
                wanted = range(message.fragment, behind)
                self._stats.values += len(wanted)
                epoch = self._replies.epoch
                said = flags, held, block.write, epoch, backlog_ms
                return [
                    wire.encode_value(message, at, *said, block.tag(at), block.value(at)) for at in wanted
                ]
            self._stats.other_writes += 1
        self._stats.not_found += 1
        return [wire.encode(self._replies.not_found(message, flags, backlog_ms))]

    def _count_get(self, flags: int) -> None:
        self._stats.gets += 1
        if not flags:
            return
        self._stats.retries += bool(flags & wire.FLAG_RETRY)
        self._stats.bypasses += bool(flags & wire.FLAG_BYPASS)
        self._stats.repairs += bool(flags & wire.FLAG_REPAIR)
        self._stats.fills += bool(flags & wire.FLAG_FILL)


def _is_of(message: wire.Message, fragments: int, write: int) -> bool:
    """Return whether a GET may be answered from a block of so many fragments, of this write."""
    return message.content in (0, write) and message.fragments in (0, fragments)
