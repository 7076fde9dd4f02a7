"""Replies of a storage node: each echoes what says which fragment it is, and who asked in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostlib.protocol import wire

if TYPE_CHECKING:
    from hostlib.storage.joining import Joining
    from hostlib.storage.storage_options import StorageStats

ECHOED_FLAGS = wire.FLAG_BYPASS | wire.FLAG_FILL | wire.FLAG_REPAIR


class Replies:
    """Made under the epoch of the newest list of storage nodes that `joining` knows."""

    def __init__(self, joining: Joining, stats: StorageStats) -> None:
        self.stats = stats
        self._joining = joining

    @property
    def epoch(self) -> int:
        """Return what each reply says of the newest list's epoch: its last byte."""
        return self._joining.members.epoch & 0xFF

    def of(
        self, message: wire.Message, op: int, flags: int, write: int, fragments: int, backlog_ms: int
    ) -> wire.Message:
        """Return a reply without a value, of a write of so many fragments."""
        return wire.Message(
            op, message.key, message.fragment, fragments, flags, 0, message.sequence, message.depth,
            message.chain_blocks, message.parent, backlog_ms, message.recompute_ms, message.tenant, write,
            (0, 0, 0), self.epoch,
        )  # fmt: skip

    def not_found(self, message: wire.Message, flags: int, backlog_ms: int) -> wire.Message:
        """Return the reply that what was asked for is not here."""
        return self.of(message, wire.OP_NOT_FOUND, flags, message.content, message.fragments, backlog_ms)

    def refused(self, message: wire.Message, reason: int, backlog_ms: int) -> wire.Message:
        """Return the reply that says so, for a reason (`wire.REFUSED_…`), and count it."""
        self.stats.refused += 1
        flags = message.flags & (ECHOED_FLAGS | wire.FLAG_RECLAIM)
        reply = self.of(message, wire.OP_REFUSED, flags, message.content, message.fragments, backlog_ms)
        return reply._replace(generation=reason)


def in_ms(wait_s: float) -> int:
    """Return a wait as messages carry it, in milliseconds."""
    return min(0xFFFF, round(1000 * wait_s))
