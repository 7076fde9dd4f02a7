"""Storage nodes as a replay sees them: each is a queue before its link."""

from __future__ import annotations

from collections.abc import Sequence

from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.keys import home_number

STORES = 4
Links = tuple[float, ...]
"""Rates of the storage nodes' links, in bit/s."""
DEFAULT_LINKS: Links = (DEFAULT_LINK_BIT_S,) * STORES


def transfers_s(cost: CostModel, links: Links) -> list[float]:
    """Return the seconds that a block takes on each link."""
    return [cost.fetch_s(cost.block_bytes, link_bit_s) for link_bit_s in links]


class Stores:
    """Storage nodes as queues before their links; measures how long fetched blocks wait and travel."""

    def __init__(self, transfers_s: Sequence[float]) -> None:
        """Take the seconds that a block takes on the link of each storage node."""
        self.busy_s = 0.0
        """Seconds of waiting and transfer, summed over all fetched blocks."""
        self._transfers_s = transfers_s
        self._free_at_s = [0.0] * len(transfers_s)

    def fetch(self, block: int, now_s: float) -> None:
        """Fetch a block from its home at `now_s`."""
        self.busy_s += self.send(home_number(block, STORES), now_s) - now_s

    def send(self, store: int, now_s: float) -> float:
        """Queue the transfer of a block on a storage node's link; return when it has been sent.

        It does not count in `busy_s`.
        """
        done_s = self._free_at_s[store] = max(self._free_at_s[store], now_s) + self._transfers_s[store]
        return done_s

    def waits_s(self, now_s: float) -> list[float]:
        """Return the seconds until each storage node's queue is empty."""
        return [max(0.0, free_at_s - now_s) for free_at_s in self._free_at_s]

    def fetches_s(self, now_s: float) -> list[float]:
        """Return the seconds that a fetch from each storage node takes if it begins now."""
        waits_s = self.waits_s(now_s)
        return [wait_s + own_s for wait_s, own_s in zip(waits_s, self._transfers_s, strict=True)]
