"""Any order of calls that vLLM makes: what is stored is right, whatever fails, and every request ends."""

from __future__ import annotations

import pytest

from tests.engines.vllm.engine_model import EngineModel
from tests.engines.vllm.pool_in_hand import PoolInHand

PROMPT = [0, 1, 2, 1, 1, 0, 2, 2, 0, 0, 1, 2, 2, 1, 0, 0, 1, 1, 1]  # four blocks of 4 tokens, and 3


def check(engine: EngineModel) -> None:
    """All that is in the pool is what belongs there."""
    for key, content in engine.pool.objects.items():
        assert content == engine.names[key]


@pytest.mark.parametrize("order", ["v1", "v1 with drafts", "v2"])
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_prompt_is_stored_once_and_comes_back(order: str, background: bool, depth: int) -> None:
    pool = PoolInHand()
    first = EngineModel(pool, order=order, background=background, depth=depth)
    first.add("a", PROMPT)
    first.run()
    check(first)
    assert len(pool.objects) == 2 * 5  # of the answer, three more tokens make a block whole
    second = EngineModel(pool, order=order, background=background, depth=depth)
    second.names = first.names
    second.add("b", PROMPT)
    second.run()
    check(second)
    assert pool.offered_blocks == 5 + 1  # the last one is not part of the prompt, so nobody asked for it
