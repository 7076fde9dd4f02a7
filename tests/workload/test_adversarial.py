import pytest

from workload.adversarial import ADVERSARIAL, CHAIN_BLOCKS, HOT_BLOCKS
from workload.generate import generate


@pytest.mark.parametrize("shape", ADVERSARIAL)
def test_shape_is_the_same_twice_and_differs_by_seed(shape: str) -> None:
    first = generate(shape, 1, 300)
    assert first.requests == generate(shape, 1, 300).requests
    assert first.requests != generate(shape, 2, 300).requests
    assert all(len(request.blocks) == CHAIN_BLOCKS for request in first.requests)


def test_the_loop_is_a_fifth_larger_than_its_pool() -> None:
    assert len({block for request in generate("loop", 1, 500).requests for block in request.blocks}) == (
        HOT_BLOCKS * 6 // 5
    )


def test_turns_return_exactly_once() -> None:
    heads = [request.blocks[0] for request in generate("due_turns", 1, 2000).requests]
    assert max(heads.count(head) for head in set(heads)) == 2


def test_chains_that_return_soon_do_so_once_and_in_turns() -> None:
    heads = [request.blocks[0] for request in generate("soon_again", 1, 6000).requests]
    second = heads[2000:4000]
    assert sorted({heads.count(head) for head in set(second)}) == [1, 2]
    back = sum(head in second[:place] for place, head in enumerate(second))
    assert 800 < back < 1000
    assert not {*heads[:2000]} & {*second}
