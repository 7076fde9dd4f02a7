"""One replay: a trace through one pool, and what the pool saved.

Every block of every request is one access, in chain order, from the first request on. A block hit is any
access that the pool serves; a prefix hit counts only if all blocks before it in its chain hit too.

- saved_prefill_s: time to prefill the prefix hits of each request (`workload/cost.py`), as if the pool
  were all there is.
- saved_bytes: KV that the pool served and storage nodes did not have to send; blocks move whole.
- saved_transfer_s: storage nodes hold all that the trace produced before, each behind one link, and send
  in order what the pool does not serve. It is the time for which fetched blocks waited and travelled
  without the pool, less that with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.policies.pools import Pool
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.keys import home_number
from workload.trace import Request, Trace

STORES = 4


@dataclass(frozen=True)
class Result:
    """What one policy did at one size; the fields of results/policies/summary.json."""

    policy: str
    blocks: int
    block_hit: float
    prefix_hit: float
    saved_prefill_s: float
    saved_transfer_s: float
    saved_bytes: float
    admissions: int


class Stores:
    """Storage nodes as queues before their links; measures how long fetched blocks wait and travel."""

    def __init__(self, transfer_s: float) -> None:
        self.busy_s = 0.0
        """Sum over all fetched blocks of waiting and transfer."""
        self._transfer_s = transfer_s
        self._free_at_s = [0.0] * STORES

    def fetch(self, block: int, now_s: float) -> None:
        """A block is asked for at `now_s`."""
        store = home_number(block, STORES)
        done_s = max(self._free_at_s[store], now_s) + self._transfer_s
        self._free_at_s[store] = done_s
        self.busy_s += done_s - now_s


class Ledger:
    """Adds up what the pool served and saved, request by request."""

    def __init__(self, trace: Trace, cost: CostModel) -> None:
        self._trace = trace
        self._cost = replace(cost, block_tokens=trace.block_tokens)
        transfer_s = self._cost.fetch_s(self._cost.block_bytes, DEFAULT_LINK_BIT_S)
        self._without, self._with = Stores(transfer_s), Stores(transfer_s)
        self._stored: set[int] = set()
        self._hits = self._prefix_hits = 0
        self._saved_prefill_s = 0.0

    def add(self, request: Request, hits: Sequence[bool]) -> None:
        """A request, and which of its blocks the pool had."""
        for block, hit in zip(request.blocks, hits, strict=True):
            if block in self._stored:
                self._without.fetch(block, request.arrival_s)
                if not hit:
                    self._with.fetch(block, request.arrival_s)
        self._stored.update(request.blocks)
        prefix = hits.index(False) if False in hits else len(hits)
        self._hits += sum(hits)
        self._prefix_hits += prefix
        prefix_tokens = min(prefix * self._trace.block_tokens, request.input_tokens)
        self._saved_prefill_s += self._cost.prefill_s(prefix_tokens)

    def result(self, policy: str, blocks: int, admissions: int) -> Result:
        """The totals."""
        accesses = self._trace.accesses
        return Result(
            policy,
            blocks,
            self._hits / accesses,
            self._prefix_hits / accesses,
            self._saved_prefill_s,
            self._without.busy_s - self._with.busy_s,
            self._hits * self._cost.block_bytes,
            admissions,
        )


def replay(trace: Trace, policy: str, blocks: int, pool: Pool, cost: CostModel) -> Result:
    """Play the whole trace through the pool."""
    ledger = Ledger(trace, cost)
    for request in trace.requests:
        now_s, chain = request.arrival_s, request.blocks
        ledger.add(request, [pool.asked(block, now_s, depth, chain) for depth, block in enumerate(chain)])
    return ledger.result(policy, blocks, pool.admissions)
