"""The shadows hit exactly where libcachesim's policies do, and say what they evict."""

import libcachesim
import pytest

from controller.policies.shadows import SHADOWS, LirsShadow, MqShadow, Shadow
from workload.generate import generate

REFERENCES = [
    (MqShadow, libcachesim.MQ, 20),
    (LirsShadow, libcachesim.LIRS, 200),  # below, libcachesim's has a single cold block
]


@pytest.mark.parametrize(
    ("make", "reference", "capacity"),
    [(make, reference, size) for make, reference, least in REFERENCES for size in (least, 700)],
)
@pytest.mark.parametrize("shape", ["chat", "drift", "scan"])
def test_same_hits_as_libcachesim(
    make: type[Shadow], reference: type[libcachesim.MQ], shape: str, capacity: int
) -> None:
    shadow, cache = make(capacity), reference(capacity)
    request = libcachesim.Request()
    request.obj_size = 1
    for asked in generate(shape, 2, 700).requests:
        for block in asked.blocks:
            request.obj_id = block
            assert shadow.ask(block) == cache.get(request)


@pytest.mark.parametrize("make", SHADOWS)
@pytest.mark.parametrize("capacity", [20, 21, 150])
def test_what_it_holds_is_what_was_asked_less_what_it_evicted(make: type[Shadow], capacity: int) -> None:
    shadow, held = make(capacity), set()
    for asked in generate("rag", 3, 200).requests:
        for block in asked.blocks:
            assert shadow.ask(block) == (block in held)
            held.add(block)
            held.difference_update(shadow.evicted)
            assert block in shadow
    assert set(shadow) == held
    assert len(held) == capacity
