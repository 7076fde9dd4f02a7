"""What one tenant may hold of a pool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.block_id import block_id, tenant_of
from controller.policies import Demoted
from controller.pool.quota import Quota
from tests.controller.pool_world import FRAGMENTS, OWN_POLICIES, TENANT, World, hot_miss, key

OTHER = TENANT + 1


def of(tenant: int, number: int) -> bytes:
    return block_id(tenant, key(number)[2:])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.booleans())),
    st.integers(1, 4),
    st.integers(7, 20),
)
def test_no_tenant_exceeds_it_and_the_least_recently_used_goes(
    steps: list[tuple[int, int, bool]], blocks: int, slots: int
) -> None:
    """A block has as many fragments as its number says, and one more."""
    quota, held = Quota(blocks, slots), {tenant: list[bytes]() for tenant in range(3)}
    numbers = {of(tenant, number): number for tenant in range(3) for number in range(7)}
    for tenant, number, touch in steps:
        name = of(tenant, number)
        if name in held[tenant]:
            if touch:
                quota.touched(name)
                held[tenant].append(held[tenant].pop(held[tenant].index(name)))
            continue
        while not quota.has_room(name, number + 1):
            used = sum(numbers[one] + 1 for one in held[tenant])
            assert len(held[tenant]) >= blocks or used + number + 1 > slots
            assert quota.oldest(name) == held[tenant]
            quota.left(held[tenant].pop(0))
        quota.entered(name, number + 1)
        held[tenant].append(name)
        assert len(held[tenant]) <= blocks
        assert sum(numbers[one] + 1 for one in held[tenant]) <= slots
    assert quota.held() == {tenant: len(blocks) for tenant, blocks in held.items() if blocks}


def half_full_of_another(policy: str) -> World:
    """Return a pool of eight blocks of which another tenant has its share, four."""
    world = World(blocks=8, policy=policy, tenant_share=0.5)
    for number in range(4):
        world.pool.hot_miss(hot_miss(number, tenant=OTHER), 1.0)
        world.pool.commit(1.0)
    return world


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_a_tenant_s_flood_displaces_no_block_of_another(policy: str) -> None:
    world = half_full_of_another(policy)
    for number in range(100, 200):
        world.miss(number)
    tenants = [tenant_of(entry) for entry in world.installed]
    assert (tenants.count(TENANT), tenants.count(OTHER)) == (4, 4)
    assert world.pool.counts.over_quota > 0
    assert world.pool.held_by_tenant() == {TENANT: 4, OTHER: 4}
    assert set(world.policy) == world.installed


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_what_is_reported_together_counts_before_it_is_in_the_pool(policy: str) -> None:
    world = half_full_of_another(policy)
    for first in (100, 200, 300):
        world.miss(*range(first, first + 20))
        assert world.pool.held_by_tenant() == {TENANT: 4, OTHER: 4}
    assert set(world.policy) == world.installed


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_long_blocks_take_no_more_slots_than_the_share(policy: str) -> None:
    world = World(blocks=8, policy=policy, mixed=True, tenant_share=0.5)
    for number in range(0, 160, 4):
        world.miss(number + FRAGMENTS - 1, number + FRAGMENTS - 2)
        assert world.pool.used_slots <= world.slots / 2
    assert world.pool.used_slots >= world.slots / 2 - FRAGMENTS
    assert set(world.policy) == world.installed


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_what_is_on_its_way_out_counts_until_it_is_gone(policy: str) -> None:
    world = World(blocks=8, policy=policy, tenant_share=0.5, eviction="reclaim")
    for number in range(3):
        world.miss(number)
        world.pool.tell(Demoted(key(number), 1.0))
        world.pool.commit(1.0)
    world.miss(*range(100, 120))
    assert world.pool.held_by_tenant()[TENANT] <= (8 + world.spare_blocks) / 2


def test_what_the_switch_refuses_does_not_count() -> None:
    world = World(blocks=8, table_size=2, tenant_share=0.5)
    world.miss(*range(4))
    assert len(world.installed) == 2
    assert world.pool.held_by_tenant() == {TENANT: 2}


def test_without_a_quota_a_tenant_may_have_all() -> None:
    world = World(blocks=3)
    world.miss(1, 2, 3)
    assert len(world.installed) == 3
    assert world.pool.counts.over_quota == 0
