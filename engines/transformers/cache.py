"""The KV cache of a transformers model as blocks of the pool: out of a DynamicCache, and into a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers import DynamicCache

from hostlib.engine import Item, KvSpace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from hostlib.engine import BlockingPool


def kv_space(model: PreTrainedModel, name: str, identity: str, block_tokens: int = 16) -> KvSpace:
    """Of a decoder-only model; `identity` names its weights (`engines.identity.model_identity`)."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    block_bytes = config.num_hidden_layers * 2 * heads * block_tokens * head * model.dtype.itemsize
    return KvSpace(
        name=name,
        model=identity,
        layout=f"transformers: {config.num_hidden_layers} layers, key or value, {heads} heads, token, {head}",
        dtype=str(model.dtype).removeprefix("torch."),
        block_tokens=block_tokens,
        object_bytes=(block_bytes,),
    )


def store(pool: BlockingPool, tokens: list[int], cache: DynamicCache) -> int:
    """Offer the whole blocks of a prompt that `cache` (of one sequence) holds; how many are held."""
    size = pool.space.block_tokens
    length = min(len(tokens), cache.get_seq_length())
    keys = list(pool.space.block_keys(pool.seal, tokens[:length]))
    blocks = []
    for number, block in enumerate(pool.blocks.references(keys, 0)):
        blocks.append([Item(block, memoryview(block_kv(cache, number, size).numpy()))])
    return pool.begin_store_blocks(blocks).result()


def block_kv(cache: DynamicCache, number: int, block_tokens: int) -> torch.Tensor:
    """Bytes of one block of a cache of one sequence: layer, key or value, head, token, dimension."""
    part = slice(number * block_tokens, (number + 1) * block_tokens)
    kv = [kind[0, :, part] for layer in cache.layers for kind in (layer.keys, layer.values)]
    return torch.stack(kv).contiguous().view(torch.uint8).cpu().reshape(-1)


def load(pool: BlockingPool, tokens: list[int], model: PreTrainedModel) -> DynamicCache:
    """A cache with the longest prefix of a prompt that the pool has; at least one token is left over."""
    keys = list(pool.space.block_keys(pool.seal, tokens[: len(tokens) - 1]))
    keys = keys[: pool.exists(keys)]
    contents = [torch.empty(pool.space.block_bytes, dtype=torch.uint8) for _ in keys]
    blocks = pool.blocks.references(keys, 0)
    items = [Item(block, memoryview(one.numpy())) for block, one in zip(blocks, contents, strict=True)]
    arrived = pool.load(items)
    whole = arrived.index(False) if False in arrived else len(arrived)
    pool.failed_to_load(keys[whole : whole + 1])
    cache = DynamicCache(config=model.config)
    if whole:
        kv = torch.cat([_shaped(one, model, pool.space) for one in contents[:whole]], dim=3)
        for index, (keys_of, values_of) in enumerate(kv):
            cache.update(keys_of[None], values_of[None], index)
    return cache


def _shaped(content: torch.Tensor, model: PreTrainedModel, space: KvSpace) -> torch.Tensor:
    """A block as (layer, key or value, head, token, dimension), on the model's device."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    shape = (config.num_hidden_layers, 2, heads, space.block_tokens, -1)
    return content.view(model.dtype).view(shape).to(model.device)
