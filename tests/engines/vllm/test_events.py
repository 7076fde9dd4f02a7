"""What is told of blocks that come into the pool and leave it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engines.vllm import events as module
from engines.vllm.events import Described, PoolEvents
from tests.engines.vllm.engine_model import EngineModel
from tests.engines.vllm.pool_in_hand import SPACE, PoolInHand

PROMPT = [0, 1, 2, 1, 1, 0, 2, 2, 0, 0, 1, 2, 2]  # three blocks of 4 tokens, and one token


def describe(request: Any, number: int) -> Described:
    """A block's hash is its tokens and those before it."""
    tokens = tuple(request.all_token_ids[: 4 * (number + 1)])
    return Described(tokens, ("stored", tokens))


def removed(block_hash: Any) -> Any:
    return ("removed", block_hash)


def events(shards: int = 1) -> PoolEvents:
    return PoolEvents(describe, removed, shards)


def prefixes(*lengths: int) -> list[tuple[int, ...]]:
    return [tuple(PROMPT[:length]) for length in lengths]


def engine_that_has_told() -> tuple[EngineModel, PoolEvents]:
    """An engine that has stored the prompt's blocks, and what it tells from now on."""
    told = events()
    engine = EngineModel(PoolInHand(), events=told)
    engine.add("a", PROMPT, max_tokens=1)
    engine.run()
    told.take()
    return engine, told


def test_blocks_are_told_of_when_every_rank_has_stored_its_part() -> None:
    pool = PoolInHand(replace(SPACE, tensor_parallel=2))
    pool.has_room = False
    told = events(shards=2)
    engine = EngineModel(pool, events=told)
    engine.add("a", PROMPT, max_tokens=6)
    engine.step()
    assert told.take() == []  # they are on their way
    pool.waiting.pop(0)()  # the first rank has stored its part
    engine.step()
    assert told.take() == []
    pool.happen()
    engine.step()
    assert told.take() == [("stored", prefix) for prefix in prefixes(4, 8, 12)]


def test_a_block_that_another_engine_stored_is_told_of_when_it_is_found() -> None:
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    told = events()
    second = EngineModel(first.pool, events=told)
    second.names = first.names
    second.add("b", PROMPT, max_tokens=1)
    second.run()
    assert told.take() == [("stored", prefix) for prefix in prefixes(4, 8, 12)]
    second.add("c", PROMPT, max_tokens=1)
    second.run()
    assert told.take() == []  # it was told of already


def test_a_block_that_has_left_the_pool_is_told_of_and_again_when_it_is_back() -> None:
    engine, told = engine_that_has_told()
    engine.cache.reset()
    keys = list(engine.keys.space.block_keys(engine.pool.seal, PROMPT))
    for index in range(2):
        del engine.pool.objects[SPACE.object_key(engine.pool.seal, keys[1], index)]
    engine.add("b", PROMPT, max_tokens=1)
    engine.run()
    gone = [("removed", prefix) for prefix in prefixes(8, 12)]  # without the second the third is of no use
    assert told.take() == [*gone, *[("stored", prefix) for prefix in prefixes(8, 12)]]


def test_a_block_that_fails_to_load_is_told_of() -> None:
    engine, told = engine_that_has_told()
    engine.cache.reset()
    keys = list(engine.keys.space.block_keys(engine.pool.seal, PROMPT))
    engine.pool.broken.add(SPACE.object_key(engine.pool.seal, keys[2], 0))
    engine.add("b", PROMPT, max_tokens=1)
    engine.run()
    assert told.take()[0] == ("removed", prefixes(12)[0])


def test_after_new_weights_nothing_that_was_told_is_there() -> None:
    engine, told = engine_that_has_told()
    engine.reset(running=False)
    assert told.take() == [("removed", prefix) for prefix in prefixes(4, 8, 12)]


def test_what_waits_to_be_told_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    told = events()
    engine = EngineModel(PoolInHand(), events=told)
    engine.add("a", PROMPT, max_tokens=1)
    engine.run()
    assert len(told.take()) == 2
    assert told.left_out == 1


def test_nothing_is_noted_where_nobody_wants_events() -> None:
    engine = EngineModel(PoolInHand())
    engine.add("a", PROMPT)
    engine.run()
    assert engine.workers[0]._outbox.take_stored() == []
