"""Storage nodes as a replay sees them: each a queue before its link."""

from __future__ import annotations

from collections.abc import Sequence

from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.keys import home_number

STORES = 4
Links = tuple[float, ...]
"""Rates of the storage nodes' links, bits a second."""
USUAL_LINKS: Links = (DEFAULT_LINK_BIT_S,) * STORES


def transfers_s(cost: CostModel, links: Links) -> list[float]:
    """Return how long a block takes on each link."""
    return [cost.fetch_s(cost.block_bytes, link_bit_s) for link_bit_s in links]


class Stores:
    """Storage nodes as queues before their links; measures how long fetched blocks wait and travel."""

    def __init__(self, transfers_s: Sequence[float]) -> None:
        """How long a block takes on the link of each."""
        self.busy_s = 0.0
        """Sum over all fetched blocks of waiting and transfer."""
        self._transfers_s = transfers_s
        self._free_at_s = [0.0] * len(transfers_s)

    def fetch(self, block: int, now_s: float) -> None:
        """A block is asked for at `now_s`."""
        self.busy_s += self.send(home_number(block, STORES), now_s) - now_s

    def send(self, store: int, now_s: float) -> float:
        """Have a storage node send a block, for which nobody waits; return when it has been sent."""
        done_s = self._free_at_s[store] = max(self._free_at_s[store], now_s) + self._transfers_s[store]
        return done_s

    def waits_s(self, now_s: float) -> list[float]:
        """Return how long what waits at each of them takes to leave."""
        return [max(0.0, free_at_s - now_s) for free_at_s in self._free_at_s]

    def fetches_s(self, now_s: float) -> list[float]:
        """Return how long a fetch from each of them takes that begins now."""
        waits_s = self.waits_s(now_s)
        return [wait_s + own_s for wait_s, own_s in zip(waits_s, self._transfers_s, strict=True)]
