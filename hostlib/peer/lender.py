"""An inference node that lends its memory: who answers others' GETs, from what, and the index's word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hostlib.model.watched_tiers import WatchedTiers
from hostlib.peer.lending import Lending
from hostlib.peer.lent import Lent
from hostlib.protocol.content import Content
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.transport.transport import Transport


class Lender:
    """The node at `address`, one of `members`; `transport` is its answering side, `index` the index's socket.

    `length` says how many bytes a block has as it is sent.
    """

    def __init__(
        self,
        transport: Transport,
        address: str,
        members: Members,
        link_bit_s: float,
        index: str,
        tiers: WatchedTiers,
        seal: Seal,
        content: Content,
        length: Callable[[bytes], int],
    ) -> None:
        lent = Lent(seal, content, length)
        self.store = lent.store
        self._node = StorageNode(transport, lent.store, StorageOptions(address, link_bit_s), members)
        self.lending = Lending(index, address, tiers, lent, members)

    def backlog_ms(self) -> int:
        """Return how long what is asked for now waits on the node's link."""
        return self._node.backlog_ms()

    def report(self) -> dict[str, Any]:
        """Return counters of what others asked for, what waits, and counters of questions to the index."""
        return {
            "storage": asdict(self._node.stats),
            "backlog_ms": self.backlog_ms(),
            "index": asdict(self.lending.stats),
        }

    def close(self) -> None:
        """Answer nothing any more."""
        self._node.close()
        self.lending.close()
