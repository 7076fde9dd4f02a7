"""Live is replay: a trace through a pool that is told what a switch tells, as late and as coarsely.

The controller's own pool on the model of a switch (`told.py`): a switch reports a block from so many fetches
on and at each power of two, digests wait for their list, hits for the next reading of the counters; a block
enters when its decision is carried out and is filled by its next fetch, or when the controller fetches it.
What is computed nodes tell when they begin (`expects`), and it enters as it passes on its way to its home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from ipaddress import IPv4Address

from controller.config import PoolSize
from controller.policies import Policy, make_policy
from controller.policies.reuse import Reuse
from controller.residual_value import ResidualValue
from experiments.policies.pools import PolicyPool, make_reuse
from experiments.policies.replay import Ledger
from experiments.policies.stores import STORES, USUAL_LINKS, Links, Stores, transfers_s
from experiments.policies.switch_model import Wanted
from experiments.policies.told import Telling, ToldPool
from hostlib.wire import KEY_BYTES, fingerprint
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.keys import home_number
from workload.trace import Trace

HOMES = tuple(IPv4Address(f"10.0.1.{number + 1}") for number in range(STORES))
NODES = tuple(IPv4Address(f"10.0.0.{number + 1}") for number in range(8))
"""One of them computes what is missing of a chain, always the same: of each its share is heard."""
PUT_S = 0.1
"""From the end of a request's prefill to its new blocks at their homes."""

ALL, COMPUTED = Telling("all, at once"), Telling("all, once it is computed")
"""Told of each access as it happens."""
AS_IT_IS = Telling("as by default")
UNEXPECTED = Telling("nothing expected", expects=False)
IDLE = Telling("fill idle", fill="idle")
TELLINGS = (
    ALL,
    COMPUTED,
    AS_IT_IS,
    UNEXPECTED,
    replace(AS_IT_IS, name="from the second fetch on", report_from=2),
    replace(AS_IT_IS, name="digests within 20 ms", gather_s=0.02),
    replace(AS_IT_IS, name="hits read more often", hits_at_once=True),
    replace(AS_IT_IS, name="no spare blocks", eviction="drop"),
    replace(AS_IT_IS, name="a tenth lost", lost=0.1),
    replace(AS_IT_IS, name="fill now", fill="now"),
    IDLE,
    replace(IDLE, name="fill idle, nothing expected", expects=False),
    replace(IDLE, name="fill idle, a tenth lost", lost=0.1),
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay gave."""

    saved_s: float
    block_hit: float
    prefix_hit: float
    admissions: int
    reports_per_s: float = 0.0
    fills: int = 0
    """Blocks that homes sent for the pool alone."""
    fill_delay_s: float = 0.0
    """What requests waited longer because of those."""
    packets_per_s: float = 0.0
    """Of the controller."""


class Made:
    """When blocks are at their homes: computed with all that is new of the first request for them."""

    def __init__(self, cost: CostModel) -> None:
        self.ready_s: dict[int, float] = {}
        self._cost = cost
        self._request: tuple[Sequence[int], float] = (), 0.0
        """The one that asked last for something new, and when that is there."""

    def asked(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> float:
        """Somebody asks for a block; when it is, or was, there."""
        if block not in self.ready_s:
            if self._request[0] is not chain:
                tokens = self._cost.block_tokens
                prefill_s = self._cost.prefill_s((len(chain) - depth) * tokens, depth * tokens)
                self._request = chain, now_s + prefill_s + PUT_S
            self.ready_s[block] = self._request[1]
        return self.ready_s[block]


class ComputedPool(PolicyPool):
    """A pool that carries out a policy's decisions at once, but has no block before it is at its home."""

    def __init__(self, policy: Policy, cost: CostModel) -> None:
        super().__init__(policy)
        self._made = Made(cost)

    def asked(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        ready_s = self._made.asked(block, now_s, depth, chain)
        return super().asked(block, now_s, depth, chain) and now_s >= ready_s


class LivePool:
    """A pool whose policy is told what a switch tells. Takes PolicyPool's place; a block is a fragment."""

    def __init__(
        self,
        make_policy: Callable[[int, int], Policy],
        blocks: int,
        telling: Telling,
        cost: CostModel,
        links: Links = USUAL_LINKS,
        seed: int = 1,
    ) -> None:
        self._waits_s: Sequence[float] = [0.0] * STORES
        self.told = ToldPool(
            make_policy,
            PoolSize(blocks, blocks, 1),
            HOMES,
            ResidualValue(cost, DEFAULT_LINK_BIT_S, links_bit_s=dict(zip(HOMES, links, strict=True))),
            telling,
            dict(zip(HOMES, transfers_s(cost, links), strict=True)),
            self._backlog_s,
            seed,
        )
        self._cost = cost
        self._loads_at_s = 0.0
        self._made = Made(cost)
        self._keys: dict[int, bytes] = {}
        self._computing: list[Wanted] = []
        """By the request that is being asked for."""

    @property
    def admissions(self) -> int:
        """Blocks that got an entry."""
        return self.told.pool.counts.admitted

    def loads(self, now_s: float, waits_s: Sequence[float], links: Links) -> None:
        """A request is about to come: first what is due by then happens."""
        self.told.until(now_s)
        self._waits_s, self._loads_at_s = waits_s, now_s

    def asked(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        """Ask for the block at `depth` of a chain; whether it was a hit."""
        home = HOMES[home_number(block, STORES)]
        parent = fingerprint(self._key(chain[depth - 1])) if depth else 0
        recompute_ms = round(1000 * self._cost.block_prefill_s(depth))
        wanted = Wanted(self._key(block), depth, len(chain), parent, home, recompute_ms)
        if block not in self._made.ready_s:
            self.told.at(self._made.asked(block, now_s, depth, chain), self.told.switch.put, wanted)
        if now_s < self._made.ready_s[block]:
            if not self._computing:
                self.told.at(now_s, self._computes)
            self._computing.append(wanted)
            return False  # its home does not have it yet, and nothing passes the switch
        if self.told.switch.probe(wanted, now_s):
            return True
        self.told.switch.value(wanted, now_s)
        return False

    def _computes(self) -> None:
        """What a request did not find is told when it begins, once."""
        blocks, self._computing = self._computing, []
        self.told.computes(blocks, NODES[blocks[0].key[0] % len(NODES)])

    def _backlog_s(self, home: IPv4Address, now_s: float) -> float:
        return max(0.0, self._waits_s[HOMES.index(home)] - (now_s - self._loads_at_s))

    def _key(self, block: int) -> bytes:
        key = self._keys.get(block)
        if key is None:
            key = self._keys[block] = blake2b(block.to_bytes(8, "big"), digest_size=KEY_BYTES).digest()
        return key


def replay_live(
    trace: Trace,
    blocks: int,
    telling: Telling,
    cost: CostModel,
    seed: int = 1,
    policy: str = Reuse.name,
    links: Links = USUAL_LINKS,
) -> Replayed:
    """What the pool did for the trace; raises PolicyError."""
    cost = replace(cost, block_tokens=trace.block_tokens)
    ledger = Ledger(trace, cost, links)

    def make(most: int, slots: int | None = None) -> Policy:
        if policy == Reuse.name:
            return make_reuse(most, trace, cost, slots=slots)
        return make_policy(policy, most, cost=cost, capacity_slots=slots)

    pool: PolicyPool | LivePool
    if telling in (ALL, COMPUTED):
        obeyed = make(blocks)
        pool = PolicyPool(obeyed) if telling == ALL else ComputedPool(obeyed, cost)
    else:
        pool = LivePool(make, blocks, telling, cost, links, seed)
    unfilled = Stores(transfers_s(cost, links))
    stored: set[int] = set()
    fills = 0
    for request in trace.requests:
        now_s, chain = request.arrival_s, request.blocks
        pool.loads(now_s, ledger.stores.waits_s(now_s), links)
        if isinstance(pool, LivePool):
            filled, pool.told.fills = pool.told.fills, []
            fills += len(filled)
            for home, at_s in filled:
                ledger.stores.send(HOMES.index(home), at_s)
        hits = [pool.asked(block, now_s, depth, chain) for depth, block in enumerate(chain)]
        ledger.add(request, hits)
        for block, hit in zip(chain, hits, strict=True):
            if block in stored and not hit:
                unfilled.fetch(block, now_s)
        stored.update(chain)
    result = ledger.result(policy, blocks, pool.admissions)
    figures = Replayed(result.saved_s, result.block_hit, result.prefix_hit, result.admissions)
    if not isinstance(pool, LivePool):
        return figures
    duration_s = max(trace.duration_s, 1e-9)
    return replace(
        figures,
        reports_per_s=pool.told.reports / duration_s,
        fills=fills,
        fill_delay_s=ledger.stores.busy_s - unfilled.busy_s,
        packets_per_s=pool.told.packets / duration_s,
    )
