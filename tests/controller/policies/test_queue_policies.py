"""FIFO, LRU and LFU hit exactly where libcachesim's do."""

import libcachesim
import pytest

from controller.policies import Admit, Evict, Hits, Miss, make_policy
from workload.generate import generate


@pytest.mark.parametrize(("name", "reference"), [("fifo", libcachesim.FIFO), ("lru", libcachesim.LRU)])
@pytest.mark.parametrize("capacity", [1, 50, 700])
def test_same_hits_as_libcachesim(name: str, reference: type, capacity: int) -> None:
    policy, cache = make_policy(name, capacity), reference(capacity)
    request = libcachesim.Request()
    request.obj_size = 1
    for asked in generate("chat", 2, 300).requests:
        for block in asked.blocks:
            request.obj_id = block
            hit = block in policy
            assert hit == cache.get(request)
            policy.handle(Hits(block, 0.0) if hit else Miss(block, 0.0))


def test_lfu_evicts_the_least_used_and_the_older_of_equals() -> None:
    policy = make_policy("lfu", 3)
    for key in (1, 2, 3):
        policy.handle(Miss(key, 0.0))
    policy.handle(Hits(1, 1.0, times=5))
    policy.handle(Hits(3, 1.0))
    assert policy.handle(Miss(4, 2.0)) == (Evict(2), Admit(4))
    assert policy.handle(Miss(5, 3.0)) == (Evict(4), Admit(5))
    policy.handle(Hits(5, 3.0, times=3))
    assert policy.handle(Miss(6, 4.0)) == (Evict(3), Admit(6))
