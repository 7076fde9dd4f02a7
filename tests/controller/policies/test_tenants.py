from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.policies import Admit, Evict, Hits, Key, Miss, Pin
from controller.policies.reuse import reuse as module
from controller.policies.reuse.reuse import Reuse
from controller.policies.tenants import Shares
from tests.controller.policies.checked import Checked
from tests.slow import rest_slow
from workload.generate import generate

CAPACITY = 60
asked = st.tuples(st.integers(0, 2), st.integers(0, 50))


@given(st.lists(asked, min_size=100, max_size=250))
def test_nobody_is_pushed_below_its_share(requests: list[tuple[int, int]]) -> None:
    policy = Checked(Reuse(CAPACITY))
    owners: dict[Key, int] = {}
    for step, (tenant, number) in enumerate(requests):
        key = tenant * 1000 + number
        ask(policy, owners, key, step, tenant, share=CAPACITY // 3)
    policy.check_all()


def ask(policy: Checked, owners: dict[Key, int], key: Key, step: int, tenant: int, share: int) -> None:
    """A tenant asks, and takes nothing from another that holds no more than its share; `owners` of what is in
    the pool follow."""
    held_before = Counter(owners.values())
    for decision in policy.handle(Hits(key, step) if key in policy else Miss(key, step, tenant=tenant)):
        if isinstance(decision, Admit):
            owners[decision.key] = tenant
        elif isinstance(decision, Evict):
            loser = owners.pop(decision.key)
            assert loser == tenant or held_before[loser] > share


def hits_of_the_quiet_tenant(floods: bool, apart: bool) -> float:
    """Tenant 1 asks for 20 keys in turn; tenant 0 asks nine times as often, for keys that never return."""
    policy, hits, fresh = Checked(Reuse(CAPACITY)), 0, 0
    for step in range(2000):
        for _ in range(9 * floods):
            fresh += 1
            policy.handle(Miss(10_000 + fresh % 5000, step, tenant=0))
        key = step % 20
        hits += key in policy
        policy.handle(Hits(key, step) if key in policy else Miss(key, step, tenant=int(apart)))
    policy.check_all()
    return hits / 2000


def test_a_flood_does_not_reach_another_tenants_blocks() -> None:
    alone = hits_of_the_quiet_tenant(floods=False, apart=True)
    assert alone > 0.98
    assert hits_of_the_quiet_tenant(floods=True, apart=True) > alone - 0.01


def prefix_hits(shape: str, requests: int, capacity: int, loop: int = 0) -> float:
    """Part of its blocks that a tenant hits behind their prefix; for each of them another tenant asks for
    three blocks of a loop, if it has any."""
    policy, hits, asked, turn = Checked(Reuse(capacity)), 0, 0, 0
    for request in generate(shape, 903, requests).requests:
        chain, is_prefix = request.blocks, True
        for depth, block in enumerate(chain):
            is_prefix = is_prefix and block in policy
            hits += is_prefix
            parent = chain[depth - 1] if depth else None
            event = Hits(block, 0.0) if block in policy else Miss(block, 0.0, depth, len(chain), parent)
            policy.handle(event)
        asked += len(chain)
        for _ in range(3 * len(chain) if loop else 0):
            turn += 1
            key = -1 - turn % loop
            policy.handle(Hits(key, 0.0) if key in policy else Miss(key, 0.0, tenant=1))
    policy.check_all()
    return hits / asked


@pytest.mark.parametrize(
    ("shape", "requests", "loop"),
    rest_slow(
        [("drift", 200, 300)],
        [("drift", 200, 300), ("chat", 300, 300), ("due_turns", 400, 300), ("due_turns", 400, 10**9)],
    ),
)
def test_beside_a_flood_a_tenant_hits_as_with_its_share_alone(shape: str, requests: int, loop: int) -> None:
    alone = prefix_hits(shape, requests, 150)
    assert alone > 0.03
    assert prefix_hits(shape, requests, 300, loop) == pytest.approx(alone, rel=0.01)


def test_a_pool_of_one_tenant_is_the_same_whatever_its_number() -> None:
    decisions = []
    for tenant in (0, 7):
        policy = Reuse(CAPACITY)
        asked = [block for request in generate("rag", 1, 60).requests for block in request.blocks]
        events = (Hits(key, 0.0) if key in policy else Miss(key, 0.0, tenant=tenant) for key in asked)
        decisions.append([decision for event in events for decision in policy.handle(event)])
        assert policy.explain(asked[-1]).tenancy is None
    assert decisions[0] == decisions[1]


def test_tenants_beyond_those_that_are_appraised_apart_have_their_shares_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_APPRAISERS", 2)
    policy, hits = Checked(Reuse(CAPACITY)), Counter[int]()
    owners: dict[Key, int] = {}
    for step in range(4000):
        tenant = step % 5
        key = 1000 * tenant + (step if tenant == 4 else step // 5 % 10)  # the last never asks again
        hits[tenant] += key in policy
        ask(policy, owners, key, step, tenant, share=CAPACITY // 5)
    policy.check_all()
    assert all(hits[tenant] > 0.95 * 800 for tenant in range(4))


def test_appraisers_of_tenants_that_left_are_free_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_APPRAISERS", 2)
    reuse = Reuse(CAPACITY)
    for tenant in range(5):
        for step in range(20 * CAPACITY):
            reuse.handle(Miss(10_000 * tenant + step, step, tenant=tenant))
    assert reuse._appraisers.keys() == {3, 4}
    assert reuse._others is None


def test_a_tenant_that_is_at_its_share_loses_leaves_before_their_parents() -> None:
    policy = Checked(Reuse(CAPACITY))
    parents: dict[Key, Key | None] = {}
    for step in range(300):
        policy.handle(Miss(10_000 + step, step, tenant=1))
        for depth in range(4):
            key = 4 * (step % 40) + depth
            parents[key] = key - 1 if depth else None
            miss = Miss(key, step, depth, 4, parents[key])
            for decision in policy.handle(Hits(key, step) if key in policy else miss):
                if isinstance(decision, Evict):
                    behind = [k for k, parent in parents.items() if parent == decision.key and k in policy]
                    assert not behind, step
    policy.check_all()


def test_who_asks_why_is_told_what_leaves_next_for_that_tenant() -> None:
    policy, foretold, evictions = Checked(Reuse(CAPACITY)), 0, 0
    reuse = policy.policy
    assert isinstance(reuse, Reuse)
    for step in range(2000):
        for tenant, key in ((0, step % 20), (1, 100 + step * 9 % 50), (1, 100 + (step * 9 + 4) % 50)):
            if key in policy:
                policy.handle(Hits(key, step))
                continue
            next_to_leave = reuse.explain(key, tenant).next_to_leave
            for decision in policy.handle(Miss(key, step, tenant=tenant)):
                if isinstance(decision, Evict):
                    evictions += 1
                    foretold += decision.key == next_to_leave
    assert evictions > 100
    assert foretold > 0.8 * evictions  # that somebody asks for a block changes who holds which others


def test_who_holds_most_above_its_share_gives_to_who_has_less() -> None:
    shares = Shares(12, 12, tenant=0)
    for tenant, blocks in ((0, 4), (1, 7), (2, 1)):
        shares.asked(tenant)
        for number in range(blocks):
            shares.entered(10 * tenant + number, tenant)
    assert [shares.giver(tenant, 1) for tenant in range(3)] == [1, 1, 1]
    assert shares.giver(0, 3) == 0  # it would have more than the other
    shares.left(10)
    assert [shares.giver(tenant, 1) for tenant in range(3)] == [1, 1, 1]
    shares.left(11)
    assert [shares.giver(tenant, 1) for tenant in range(3)] == [0, 1, 1]


def test_a_tenant_has_room_for_its_share_and_for_what_others_leave() -> None:
    shares = Shares(12, 12, tenant=0)
    shares.asked(1)
    for number in range(3):
        shares.entered(number, 1)
    assert [shares.capacity(tenant) for tenant in range(2)] == [9, 12]
    for number in range(3, 12):
        shares.entered(number, number > 7)
    assert [shares.capacity(tenant) for tenant in range(2)] == [6, 7]
    assert [shares.capacity_beside(apart) for apart in ([], [0], [1])] == [12, 7, 6]


def test_a_block_whose_leaves_are_pinned_leaves_for_who_is_due() -> None:
    policy = Checked(Reuse(20))
    for key in range(20):
        policy.handle(Miss(key, 0.0, key, 20, key - 1 if key else None))
    policy.handle(Pin(19, 0.0))
    assert Admit(100) in policy.handle(Miss(100, 1.0, tenant=1))


def test_what_a_tenant_leaves_another_may_borrow() -> None:
    policy = Checked(Reuse(CAPACITY))
    policy.handle(Miss(-1, 0.0, tenant=1))
    for key in range(200):
        policy.handle(Miss(key, 1.0, tenant=0))
    assert len(policy) == CAPACITY


def test_shares_count_slots_where_blocks_differ_in_length() -> None:
    policy, owners = Checked(Reuse(40, capacity_slots=160)), {}
    for step in range(3000):
        tenant = step % 10 == 0
        key = step % 70 if tenant else 1000 + step % 900
        length = 4 if tenant else 1 + step % 2
        event = Hits(key, step) if key in policy else Miss(key, step, tenant=int(tenant), fragments=length)
        for decision in policy.handle(event):
            if isinstance(decision, Admit):
                owners[decision.key] = tenant, length
            elif isinstance(decision, Evict):
                loser, _ = owners[decision.key]
                slots = sum(length for owner, length in owners.values() if owner == loser)
                assert loser == tenant or slots > 80
                del owners[decision.key]
    assert sum(length for owner, length in owners.values() if owner) > 0
    policy.check_all()
