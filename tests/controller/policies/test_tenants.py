from hypothesis import given, settings
from hypothesis import strategies as st

from controller.policies import Admit, Evict, Hits, Key, Miss
from controller.policies.checked import Checked
from controller.policies.reuse import Reuse

CAPACITY = 60
asked = st.tuples(st.integers(0, 2), st.integers(0, 50))


@settings(max_examples=40, deadline=None)
@given(st.lists(asked, min_size=100, max_size=400))
def test_nobody_is_pushed_below_its_share(requests: list[tuple[int, int]]) -> None:
    policy = Checked(Reuse(CAPACITY))
    owners: dict[Key, int] = {}
    for step, (tenant, number) in enumerate(requests):
        key = tenant * 1000 + number
        event = Hits(key, step) if key in policy else Miss(key, step, tenant=tenant)
        held_before = {t: sum(owner == t for owner in owners.values()) for t in range(3)}
        for decision in policy.handle(event):
            if isinstance(decision, Admit):
                owners[decision.key] = tenant
            elif isinstance(decision, Evict):
                loser = owners.pop(decision.key)
                assert loser == tenant or held_before[loser] > CAPACITY // 3
    policy.check_all()


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
