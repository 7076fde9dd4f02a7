"""A prompt, the keys of its blocks, and the check of what is in the pool."""

from __future__ import annotations

from tests.engines.vllm.engine_model import EngineModel

PROMPT = [0, 1, 2, 1, 1, 0, 2, 2, 0, 0, 1, 2, 2, 1, 0, 0, 1, 1, 1]  # four blocks of 4 tokens, and 3 tokens


def check(engine: EngineModel) -> None:
    """All that is in the pool is what belongs there."""
    for key, content in engine.pool.objects.items():
        assert content == engine.names[key]


def block_key(engine: EngineModel, number: int) -> bytes:
    """The key of one of the prompt's blocks."""
    return list(engine.keys.space.block_keys(engine.pool.seal, PROMPT))[number]


def object_key(engine: EngineModel, number: int, index: int, rank: int = 0) -> bytes:
    return engine.pool.space.object_key(engine.pool.seal, block_key(engine, number), index, rank)
