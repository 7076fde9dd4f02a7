"""One replay: a trace through one pool, and what the pool saved.

Every block of every request is one access, in chain order, from the first request on. A block hit is an
access that the pool serves. A prefix hit is a block hit for which all earlier blocks of the chain hit too.

- saved_s is the figure that policies are compared by. A prefix hit saves the lesser of computing the block at
  its depth and fetching it. The fetch waits for what earlier requests left queued at the block's home without
  a pool, so that a hit is worth the same under every policy. Blocks of one request do not wait for each
  other, so that each second of a link counts once.
- saved_prefill_s: time to prefill the prefix hits of each request (`workload/cost.py`), as if without the
  pool they had to be computed.
- saved_bytes: KV that the pool served, so that storage nodes did not send it; blocks move whole.
- saved_transfer_s: storage nodes hold all that the trace produced before, each behind one link, and send in
  order what the pool does not serve. It is the time for which fetched blocks wait and travel without the
  pool, less that with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from commands.own_thread import in_own_thread
from experiments.policies.pools import Pool
from experiments.policies.stores import DEFAULT_LINKS, STORES, Links, Stores, transfers_s
from workload.cost import CostModel
from workload.keys import home_number
from workload.trace import Request, Trace


@dataclass(frozen=True)
class Result:
    """Result of one policy at one pool size; its fields are those of results/policies/summary.json."""

    policy: str
    blocks: int
    block_hit: float
    prefix_hit: float
    saved_prefill_s: float
    saved_transfer_s: float
    saved_s: float
    saved_bytes: float
    admissions: int


class Prices:
    """Seconds that prefix hits save, request by request; they are the same for every pool."""

    def __init__(self, trace: Trace, cost: CostModel, links: Links) -> None:
        self.stored: set[int] = set()
        """Blocks that earlier requests asked for."""
        self.without = Stores(transfers_s(cost, links))
        """Storage nodes' queues as they are without a pool."""
        self._prefill_s = [cost.block_prefill_s(depth) for depth in range(trace.longest_chain)]

    def of(self, request: Request, blocks: int) -> list[float]:
        """Return the seconds that each of the first `blocks` blocks saves, of a request that comes now."""
        fetches_s = self.without.fetches_s(request.arrival_s)
        worths_s = zip(request.blocks[:blocks], self._prefill_s, strict=False)
        return [min(prefill_s, fetches_s[home_number(block, STORES)]) for block, prefill_s in worths_s]

    def add(self, request: Request) -> None:
        """Account for a request that came."""
        for block in request.blocks:
            if block in self.stored:
                self.without.fetch(block, request.arrival_s)
        self.stored.update(request.blocks)


class Ledger:
    """Totals of what the pool served and saved, request by request."""

    def __init__(self, trace: Trace, cost: CostModel, links: Links) -> None:
        self._trace = trace
        self._cost = cost
        self._prices = Prices(trace, cost, links)
        self.stores = Stores(transfers_s(cost, links))
        """Storage nodes' queues as they are with the pool."""
        self.hits = self._prefix_hits = 0
        self._saved_prefill_s = 0.0
        self.saved_s: list[float] = []
        """Seconds saved in each request."""

    def add(self, request: Request, hits: Sequence[bool]) -> None:
        """Account for a request; `hits` says for each of its blocks whether the pool had it."""
        prefix = hits.index(False) if False in hits else len(hits)
        prices = self._prices
        self.saved_s.append(sum(prices.of(request, prefix)))
        for block, hit in zip(request.blocks, hits, strict=True):
            if not hit and block in prices.stored:
                self.stores.fetch(block, request.arrival_s)
        prices.add(request)
        self.hits += sum(hits)
        self._prefix_hits += prefix
        prefix_tokens = min(prefix * self._trace.block_tokens, request.input_tokens)
        self._saved_prefill_s += self._cost.prefill_s(prefix_tokens)

    def result(self, policy: str, blocks: int, admissions: int) -> Result:
        """Return the totals as a result."""
        accesses = self._trace.accesses
        return Result(
            policy,
            blocks,
            self.hits / accesses,
            self._prefix_hits / accesses,
            self._saved_prefill_s,
            self._prices.without.busy_s - self.stores.busy_s,
            sum(self.saved_s),
            self.hits * self._cost.block_bytes,
            admissions,
        )


def play(trace: Trace, pool: Pool, cost: CostModel, links: Links = DEFAULT_LINKS) -> Ledger:
    """Run the whole trace through the pool; equal arguments give equal results."""
    return in_own_thread(partial(_play, trace, pool, cost, links))


def _play(trace: Trace, pool: Pool, cost: CostModel, links: Links) -> Ledger:
    ledger = Ledger(trace, cost, links)
    for request in trace.requests:
        now_s, chain = request.arrival_s, request.blocks
        pool.loads(now_s, ledger.stores.waits_s(now_s), links)
        ledger.add(request, [pool.access(block, now_s, depth, chain) for depth, block in enumerate(chain)])
    return ledger


def replay(
    trace: Trace,
    policy: str,
    blocks: int,
    pool: Pool,
    cost: CostModel,
    links: Links = DEFAULT_LINKS,
) -> Result:
    """Replay the trace through the pool and return the result."""
    ledger = play(trace, pool, replace(cost, block_tokens=trace.block_tokens), links)
    return ledger.result(policy, blocks, pool.admissions)
