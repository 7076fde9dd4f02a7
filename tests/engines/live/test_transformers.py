"""transformers' DynamicCache through the pool: logits equal to the bit."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="make test-engines")

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from engines.transformers import cache
from hostlib.engine import PoolConfig, open_pool

BLOCK_TOKENS = 16


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_from_the_pool_gives_the_same_logits(
    pool_settings: dict[str, object], dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval().to(dtype)
    tokens = torch.randint(0, 128, (1, 5 * BLOCK_TOKENS + 7))
    space = cache.kv_space(model, "tiny", "random:1", BLOCK_TOKENS)
    pool = open_pool(PoolConfig.from_mapping(pool_settings), space)
    try:
        with torch.no_grad():
            kept = DynamicCache(config=config)
            model(tokens[:, : 5 * BLOCK_TOKENS], past_key_values=kept)
            assert cache.store(pool, tokens[0].tolist(), kept) == 5
            expected = model(tokens[:, 5 * BLOCK_TOKENS :], past_key_values=kept).logits

            loaded = cache.load(pool, tokens[0].tolist(), model)
            assert loaded.get_seq_length() == 5 * BLOCK_TOKENS
            logits = model(tokens[:, 5 * BLOCK_TOKENS :], past_key_values=loaded).logits
        assert torch.equal(logits, expected)
        assert cache.load(pool, tokens[0].flip(0).tolist(), model).get_seq_length() == 0
    finally:
        pool.close()
