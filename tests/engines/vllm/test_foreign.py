"""KV that another connector loaded, or that the engine computes wrong, is not stored."""

from __future__ import annotations

import pytest

from tests.engines.vllm.engine_model import EngineModel
from tests.engines.vllm.one_prompt import PROMPT, check, object_key
from tests.engines.vllm.pool_in_hand import PoolInHand


@pytest.mark.parametrize("depth", [1, 2])
def test_what_another_connector_loads_is_not_stored_nor_what_is_computed_on_it(
    depth: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be of another adapter or of other weights, which keys of the pool would not say."""
    engine = EngineModel(PoolInHand(), depth=depth)
    engine.runner.peer_lies = True
    engine.scheduler.peer_offers["a"] = 3
    engine.add("a", PROMPT)
    engine.run()
    assert not engine.pool.objects
    engine.add("b", [*PROMPT[:12], 2, 2, 2, 2, 2])  # it finds what the other connector loaded
    engine.run()
    assert not engine.pool.objects
    engine.add("c", PROMPT[::-1])
    engine.run()
    check(engine)
    assert len(engine.pool.objects) == 2 * 5
    assert [
        "is not stored in the pool, nor what is computed on it" in one.message for one in caplog.records
    ] == [True]
    engine.cache.reset()  # its blocks are given anew, and hold what is computed then
    engine.add("d", PROMPT)
    engine.run()
    check(engine)
    assert len(engine.pool.objects) == 4 * 5


def test_a_request_that_finds_in_the_same_step_what_another_connector_loads_stores_nothing_of_it() -> None:
    """vLLM puts blocks of a load in a step into its own cache before the step begins."""
    engine = EngineModel(PoolInHand(), budget=40)
    engine.runner.peer_lies = True
    engine.scheduler.peer_offers["a"] = 3
    for name in ("a", "b"):
        engine.add(name, PROMPT)
    engine.run()
    assert not engine.pool.objects


def test_what_is_computed_beside_an_adapter_is_not_stored_where_vllm_applies_it_to_all() -> None:
    """It does on CPUs. The blocks stay in its own cache, so later requests that find them store nothing."""
    engine = EngineModel(PoolInHand(), budget=12, applies_others_adapters=True)
    with_adapter, plain = [2, 2, 1, 0] * 5, PROMPT
    for _ in range(2):  # the second time from the engine's own cache
        engine.add("plain", plain)
        engine.step()  # three blocks alone
        engine.add("with adapter", with_adapter, adapter="sql")
        engine.run()
    stored = {number for number in range(4) if object_key(engine, number, 1) in engine.pool.objects}
    assert stored == {0, 1, 2}
    assert len(engine.pool.objects) > 2 * 3  # and those with the adapter
    engine.cache.reset()
    engine.add("plain again", plain)
    engine.run()
    assert object_key(engine, 3, 1) in engine.pool.objects
