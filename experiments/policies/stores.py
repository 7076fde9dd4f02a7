"""Storage nodes as a replay sees them: each a queue before its link."""

from __future__ import annotations

from workload.keys import home_number

STORES = 4


class Stores:
    """Storage nodes as queues before their links; measures how long fetched blocks wait and travel."""

    def __init__(self, transfer_s: float) -> None:
        self.busy_s = 0.0
        """Sum over all fetched blocks of waiting and transfer."""
        self._transfer_s = transfer_s
        self._free_at_s = [0.0] * STORES

    def fetch(self, block: int, now_s: float) -> None:
        """A block is asked for at `now_s`."""
        self.busy_s += self.send(home_number(block, STORES), now_s) - now_s

    def send(self, store: int, now_s: float) -> float:
        """A storage node is to send a block, for which nobody waits; when it has been sent."""
        done_s = self._free_at_s[store] = max(self._free_at_s[store], now_s) + self._transfer_s
        return done_s

    def waits_s(self, now_s: float) -> list[float]:
        """How long what waits at each of them takes to leave."""
        return [max(0.0, free_at_s - now_s) for free_at_s in self._free_at_s]

    def fetches_s(self, now_s: float) -> list[float]:
        """How long a fetch from each of them takes that begins now."""
        return [wait_s + self._transfer_s for wait_s in self.waits_s(now_s)]
