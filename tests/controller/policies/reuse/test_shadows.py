"""The shadows hit exactly where libcachesim's policies do, and say what they evict."""

import libcachesim
import pytest

from controller.policies.reuse.shadows import ArcShadow, LirsShadow, MqShadow, Shadow, make_shadows
from workload.generate import generate

REFERENCES = [
    (MqShadow, libcachesim.MQ, 20),
    (ArcShadow, libcachesim.ARC, 20),
    (LirsShadow, libcachesim.LIRS, 200),  # below, libcachesim's has a single cold block
]


@pytest.mark.parametrize(
    ("make", "reference", "capacity"),
    [(make, reference, size) for make, reference, least in REFERENCES for size in (least, 300)],
)
@pytest.mark.parametrize("shape", ["chat", "drift", "scan"])
def test_same_hits_as_libcachesim(
    make: type[Shadow], reference: type[libcachesim.MQ], shape: str, capacity: int
) -> None:
    shadow, cache = make(capacity), reference(capacity, hashpower=12)
    request = libcachesim.Request()
    request.obj_size = 1
    for asked in generate(shape, 2, 300).requests:
        for block in asked.blocks:
            request.obj_id = block
            assert shadow.ask(block) == cache.get(request)


@pytest.mark.parametrize("number", range(len(make_shadows(20))))
@pytest.mark.parametrize("capacity", [20, 21, 150])
def test_what_it_holds_is_what_was_asked_less_what_it_evicted(number: int, capacity: int) -> None:
    shadow, held = make_shadows(capacity)[number], set()
    for asked in generate("rag", 3, 200).requests:
        for block in asked.blocks:
            assert shadow.ask(block) == (block in held)
            held.add(block)
            held.difference_update(shadow.evicted)
            assert block in shadow
    assert set(shadow) == held
    assert len(held) == capacity


@pytest.mark.parametrize("number", range(len(make_shadows(20))))
@pytest.mark.parametrize("largest", [4, 16])
def test_blocks_that_differ_in_size_fit_together(number: int, largest: int) -> None:
    capacity = 40 * largest
    shadow, held = make_shadows(capacity, largest)[number], set()
    for asked in generate("rag", 3, 300).requests:
        for block in asked.blocks:
            assert shadow.ask(block, 1 + block % largest) == (block in held)
            held.add(block)
            held.difference_update(shadow.evicted)
            assert block in shadow
            assert sum(1 + key % largest for key in held) <= capacity
    assert set(shadow) == held
    assert len(shadow._sizes) < 12 * capacity  # nothing is remembered for ever
    assert sum(1 + key % largest for key in held) > capacity - 2 * largest


@pytest.mark.parametrize("number", range(len(make_shadows(20))))
def test_a_size_that_all_have_changes_nothing(number: int) -> None:
    alike, sized = make_shadows(200)[number], make_shadows(1400, largest=7)[number]
    for asked in generate("scan", 3, 300).requests:
        for block in asked.blocks:
            assert alike.ask(block) == sized.ask(block, 7)
            assert alike.evicted == sized.evicted
