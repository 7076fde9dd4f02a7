from collections.abc import Sequence

import pytest

from controller.policies import PolicyError
from controller.policies.reuse.reuse_parts import Parts
from experiments.policies.pools import BELADY, NAMES, make_pool, next_accesses
from experiments.policies.replay import replay
from experiments.policies.stores import STORES, Links
from workload.cost import CostModel
from workload.generate import generate
from workload.keys import home_number
from workload.trace import MOONCAKE, Request, Trace

COST = CostModel()
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)


def trace_of(*chains: Sequence[int], gap_s: float = 10.0) -> Trace:
    requests = [Request(gap_s * n, 512 * len(chain), 1, tuple(chain)) for n, chain in enumerate(chains)]
    return Trace("small", MOONCAKE, tuple(requests))


class Holds:
    """A pool that holds what it was given, whatever happens."""

    def __init__(self, *blocks: int) -> None:
        self.blocks = blocks
        self.admissions = len(blocks)

    def loads(self, now_s: float, waits_s: Sequence[float], links: Links) -> None: ...

    def access(self, block: int, now_s: float, depth: int, chain: Sequence[int]) -> bool:
        return block in self.blocks


def test_what_is_counted() -> None:
    trace = trace_of([1, 2, 3], [1, 2, 3], [1, 9, 3])
    result = replay(trace, "some", 7, Holds(1, 3), COST)
    assert result.block_hit == pytest.approx(6 / 9)
    assert result.prefix_hit == pytest.approx(3 / 9)
    assert result.saved_prefill_s == pytest.approx(3 * COST.prefill_s(512))
    assert result.saved_bytes == pytest.approx(6 * COST.block_bytes)
    assert (result.policy, result.blocks, result.admissions) == ("some", 7, 2)


def test_transfer_saved_is_waiting_and_travel_of_what_was_stored_before() -> None:
    trace = trace_of([1], [1], [1])
    assert replay(trace, "", 1, Holds(1), COST).saved_transfer_s == pytest.approx(2 * BLOCK_S)
    assert replay(trace, "", 1, Holds(), COST).saved_transfer_s == 0
    # Two blocks of one store at once: the second waits for the first.
    busy = trace_of([1, 5], [1, 5], gap_s=0.0)
    saved_s = replay(busy, "", 1, Holds(1, 5), COST).saved_transfer_s
    assert saved_s in (pytest.approx(2 * BLOCK_S), pytest.approx(3 * BLOCK_S))


def test_a_hit_is_worth_the_lesser_of_computing_and_fetching_behind_earlier_requests() -> None:
    alone = trace_of([1], [1])
    assert replay(alone, "", 1, Holds(1), COST).saved_s == pytest.approx(BLOCK_S + BLOCK_S)
    # Blocks of one store: those of an earlier request at the same moment are waited for, its own are not.
    same = [block for block in range(400) if home_number(block, STORES) == 0][:40]
    crowd = trace_of(same, same, same[:2], gap_s=0.0)
    waited_s = len(same) * BLOCK_S
    saved_s = replay(crowd, "", 1, Holds(*same), COST).saved_s
    computed_s = sum(COST.block_prefill_s(depth) for depth in range(2))
    assert waited_s > computed_s / 2
    assert saved_s == pytest.approx(2 * len(same) * BLOCK_S + computed_s)
    # Over a slow link computing is the lesser.
    slow_s = replay(alone, "", 1, Holds(1), COST, (1e8,) * STORES).saved_s
    assert slow_s == pytest.approx(2 * COST.block_prefill_s(0))
    # Each home has a link of its own.
    links = tuple(1e8 if store == home_number(1, STORES) else 2e11 for store in range(STORES))
    assert replay(alone, "", 1, Holds(1), COST, links).saved_s == slow_s
    other = next(block for block in range(100) if home_number(block, STORES) != home_number(1, STORES))
    alike = trace_of([other], [other])
    assert replay(alike, "", 1, Holds(other), COST, links).saved_s == pytest.approx(2 * BLOCK_S)
    # Without its prefix a hit saves nothing.
    assert replay(trace_of([1, 2], [1, 2]), "", 1, Holds(2), COST).saved_s == 0


def test_a_partial_block_saves_only_its_tokens() -> None:
    trace = Trace("t", MOONCAKE, (Request(0.0, 600, 1, (1, 2)),))
    assert replay(trace, "", 1, Holds(1, 2), COST).saved_prefill_s == pytest.approx(COST.prefill_s(600))


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_replays(name: str) -> None:
    trace = generate("agents", 1, 200)
    result = replay(trace, name, 150, make_pool(name, 150, trace, COST), COST)
    assert 0 < result.prefix_hit <= result.block_hit < 1
    assert result.saved_prefill_s > 0
    assert result.saved_transfer_s > 0
    assert result.admissions >= 150


@pytest.mark.parametrize("name", ["lhd", "hyperbolic", "cacheus"])
def test_what_decides_by_chance_decides_the_same_each_time(name: str) -> None:
    """Whatever was replayed before."""
    trace = generate("services", 624, 600)
    first, second = (
        replay(trace, name, 300, make_pool(name, 300, trace, COST), COST).saved_s for _ in range(2)
    )
    assert first == second > 0


def test_belady_is_the_bound() -> None:
    trace = generate("chat", 1, 600)
    hits = {
        name: replay(trace, name, 300, make_pool(name, 300, trace, COST), COST).block_hit for name in NAMES
    }
    assert max(hits.values()) == hits[BELADY]


def test_own_lru_is_libcachesims() -> None:
    """The way accesses are counted is the usual one: one object a block, in chain order."""
    import libcachesim

    trace = generate("chat", 3, 500)
    cache, request, hits = libcachesim.LRU(200), libcachesim.Request(), 0
    request.obj_size = 1
    for access in trace.requests:
        for block in access.blocks:
            request.obj_id = block
            hits += cache.get(request)
    result = replay(trace, "lru", 200, make_pool("lru", 200, trace, COST), COST)
    assert result.block_hit == hits / trace.accesses


def test_next_accesses() -> None:
    assert [n if n < 10 else None for n in next_accesses(trace_of([1, 2], [1], [2]))] == [2, 3, None, None]


def test_ablated_pool_differs() -> None:
    trace = generate("chat", 1, 800)
    whole = replay(trace, "reuse", 200, make_pool("reuse", 200, trace, COST), COST)
    bare = replay(trace, "reuse", 200, make_pool("reuse", 200, trace, COST, Parts(memory=False)), COST)
    assert bare.block_hit != whole.block_hit


@pytest.mark.parametrize(("name", "blocks"), [("x", 100), ("lru", 1)])
def test_impossible_pools(name: str, blocks: int) -> None:
    with pytest.raises(PolicyError):
        make_pool(name, blocks, trace_of([1]), COST)
