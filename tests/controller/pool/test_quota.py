"""What one tenant may hold of a pool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.block_id import block_id, tenant_of
from controller.pool.quota import Quota
from tests.controller.pool_world import OWN_POLICIES, TENANT, World, hot_miss, key

OTHER = TENANT + 1


def of(tenant: int, number: int) -> bytes:
    return block_id(tenant, key(number)[2:])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.booleans())), st.integers(1, 4))
def test_no_tenant_exceeds_it_and_the_least_recently_used_goes(
    steps: list[tuple[int, int, bool]], blocks: int
) -> None:
    quota, held = Quota(blocks), {tenant: list[bytes]() for tenant in range(3)}
    for tenant, number, touch in steps:
        name = of(tenant, number)
        if name in held[tenant]:
            if touch:
                quota.touched(name)
                held[tenant].append(held[tenant].pop(held[tenant].index(name)))
            continue
        victim = quota.victim_for(name)
        assert victim == (held[tenant][0] if len(held[tenant]) >= blocks else None)
        if victim is not None:
            quota.left(held[tenant].pop(0))
        quota.entered(name)
        held[tenant].append(name)


@pytest.mark.parametrize("policy", OWN_POLICIES)
def test_a_tenant_s_flood_displaces_no_block_of_another(policy: str) -> None:
    world = World(blocks=8, policy=policy, tenant_share=0.5)
    for number in range(4):
        world.pool.hot_miss(hot_miss(number, tenant=OTHER), 1.0)
        world.pool.commit(1.0)
    for number in range(100, 200):
        world.miss(number)
    tenants = [tenant_of(entry) for entry in world.installed]
    assert (tenants.count(TENANT), tenants.count(OTHER)) == (4, 4)
    assert world.pool.counts.over_quota > 0
    assert world.pool.held_by_tenant() == {TENANT: 4, OTHER: 4}
    assert set(world.policy) == world.installed


def test_without_a_quota_a_tenant_may_have_all() -> None:
    world = World(blocks=3)
    world.miss(1, 2, 3)
    assert len(world.installed) == 3
    assert world.pool.counts.over_quota == 0
