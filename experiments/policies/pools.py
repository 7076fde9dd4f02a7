"""Pools under a policy, as a replay sees them: asked for a block, a pool says whether it had it.

The project's policies get the same events as in the live system. Those of libcachesim are asked directly,
which is faster. Belady and some others exist only here, as they cannot be used online or block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Protocol

from commands.own_thread import in_own_thread
from controller.policies import OWN_POLICIES, Admit, Hits, HomeLoad, Miss, Policy, make_policy
from controller.policies.baseline import BASELINES, MIN_BLOCKS, PolicyError, load_libcachesim
from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_parts import Parts, Tuning
from experiments.policies.stores import STORES, Links
from workload.cost import CostModel
from workload.keys import home_number
from workload.trace import Trace

OWN = tuple(dict.fromkeys(("reuse", *OWN_POLICIES)))
BELADY = "belady"
CACHES = {
    **BASELINES,
    "lhd": "LHD",
    "hyperbolic": "Hyperbolic",
    "cacheus": "Cacheus",
    "wtinylfu": "WTinyLFU",
    BELADY: "Belady",
}
NAMES = (*OWN, *CACHES)
AVAILABLE = NAMES if find_spec("libcachesim") else OWN
"""Policies that can be replayed here; libcachesim has wheels for x86-64 only."""
NEVER = 2**62


class Pool(Protocol):
    """A pool that a replay asks for blocks."""

    admissions: int
    """Number of blocks written into the pool."""

    def loads(self, now_s: float, waits_s: Sequence[float], links: Links) -> None:
        """Take the loads before the next request: a fetch's wait at each storage node in
        seconds, and link rates."""

    def access(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        """Ask for `block` at `depth` of a chain; return whether it was a hit."""


class PolicyPool:
    """A pool that carries out a policy's decisions at once."""

    def __init__(self, policy: Policy) -> None:
        self.admissions = 0
        self._policy = policy

    def loads(self, now_s: float, waits_s: Sequence[float], links: Links) -> None:
        for home, (wait_s, link_bit_s) in enumerate(zip(waits_s, links, strict=True)):
            self._policy.home_load(HomeLoad(home, now_s, wait_s, link_bit_s))

    def access(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        if block in self._policy:
            self._policy.hits(Hits(block, now_s))
            return True
        parent = chain[depth - 1] if depth else None
        decisions = self._policy.miss(
            Miss(block, now_s, depth, len(chain), parent, 1, home_number(block, STORES))
        )
        if decisions and type(decisions[-1]) is Admit:  # it comes last, and alone: every parent is known here
            self.admissions += 1
        return False


class CachePool:
    """A pool that is a cache of libcachesim: every miss is written into it."""

    def __init__(self, name: str, capacity_blocks: int, trace: Trace) -> None:
        self.admissions = 0
        # Its hash tables take 128 MB by default, and most of the time of a short replay.
        libcachesim = load_libcachesim(name)
        make = partial(
            getattr(libcachesim, CACHES[name]), capacity_blocks, hashpower=capacity_blocks.bit_length() + 3
        )
        self._cache = in_own_thread(make)
        self._request = libcachesim.Request()
        self._request.obj_size = 1
        self._next = iter(next_accesses(trace)) if name == BELADY else None

    def loads(self, now_s: float, waits_s: Sequence[float], links: Links) -> None:
        pass

    def access(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        request = self._request
        request.obj_id = block
        request.clock_time = int(now_s)
        if self._next is not None:
            request.next_access_vtime = next(self._next)
        hit: bool = self._cache.get(request)
        self.admissions += not hit
        return hit


def next_accesses(trace: Trace) -> list[int]:
    """Return, for each access of a trace, the number of the next access of the same block."""
    accesses = [block for request in trace.requests for block in request.blocks]
    upcoming: dict[int, int] = {}
    following = [NEVER] * len(accesses)
    for number in range(len(accesses) - 1, -1, -1):
        following[number] = upcoming.get(accesses[number], NEVER)
        upcoming[accesses[number]] = number
    return following


def make_reuse(
    blocks: int,
    trace: Trace,
    cost: CostModel,
    parts: Parts | None = None,
    *,
    tuning: Tuning | None = None,
) -> Reuse:
    """Return the policy `reuse` for a replay: its cost model has the trace's block size."""
    return Reuse(blocks, replace(cost, block_tokens=trace.block_tokens), parts, tuning=tuning)


def make_pool(
    name: str, capacity_blocks: int, trace: Trace, cost: CostModel, parts: Parts | None = None
) -> Pool:
    """Return a pool under the policy `name`; `parts` switches parts of the reuse-value policy off.

    Raises PolicyError for an unknown name and for fewer than MIN_BLOCKS.
    """
    if name not in NAMES:
        raise PolicyError(f"no policy {name!r}: choose one of {', '.join(NAMES)}")
    if capacity_blocks < MIN_BLOCKS:
        raise PolicyError(f"pools are replayed from {MIN_BLOCKS} blocks on, not {capacity_blocks}")
    if parts is not None or name == Reuse.name:
        return PolicyPool(make_reuse(capacity_blocks, trace, cost, parts))
    if name in OWN:
        return PolicyPool(make_policy(name, capacity_blocks, cost=cost))
    return CachePool(name, capacity_blocks, trace)
