"""The KV cache of a transformers model as blocks of the pool: out of a DynamicCache, and into a new one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from engines.model_configuration import ROPES_OF_LENGTH, rope_types
from engines.numbers import holds_numbers, shortened_products
from engines.replaced import replaced_functions
from hostlib.engine import Item, KvSpace
from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from hostlib.engine import BlockingPool


KNOWN_CODE = ("torch", "transformers")
"""Packages whose code their version names."""
PLAIN = (bool, int, float, str, torch.Tensor)
"""Types of a module's attributes that decide what it computes, beside parameters and code."""
INDIFFERENT = ("_name_or_path", "transformers_version", "use_cache")
"""Entries of a model's configuration, or attributes of it, that do not change its KV."""
TRIED_TOKENS = 8
"""Number of tokens in each half of the prompts with which a model is tried."""


def kv_space(model: PreTrainedModel, name: str, block_tokens: int = 16) -> KvSpace:
    """Return the key space of a decoder-only model as it is now.

    Make another one after changing the model: `store` and `load` refuse one that has changed. Raises
    KeySpaceError for a model whose cache does not keep every token, whose KV of a block depends on the tokens
    behind it, or on more than weights, attributes and configuration say.
    """
    config = model.config
    _check_code(model)
    _check_attention(model)
    _check_cache(config)
    _check_rope(config)
    _check_inputs(model)
    _check_device(model)
    _try_prefix(model)
    layers, heads, head = _shape(config)
    return KvSpace(
        name=name,
        model=weights_identity(model),
        layout=f"transformers: {layers} layers, key or value, {heads} heads, token, {head}",
        dtype=str(model.dtype).removeprefix("torch."),
        block_tokens=block_tokens,
        object_bytes=(block_bytes(model, block_tokens),),
        settings=_settings(model),
    )


def block_bytes(model: PreTrainedModel, block_tokens: int) -> int:
    """Return the size of the KV of so many tokens."""
    layers, heads, head = _shape(model.config)
    return layers * 2 * heads * block_tokens * head * int(model.dtype.itemsize)


def weights_identity(model: torch.nn.Module) -> str:
    """Return the name of the content of a model's parameters and buffers, adapters among them."""
    content = sha256()
    for name, tensor in sorted([*model.named_parameters(), *model.named_buffers()]):
        plain = tensor.detach().cpu().contiguous()
        content.update(json.dumps([name, str(plain.dtype), list(plain.shape)]).encode())
        content.update(plain.reshape(-1).view(torch.uint8).numpy())
    return f"parameters:{content.hexdigest()[:32]}"


def _check_unchanged(model: PreTrainedModel, space: KvSpace) -> None:
    """Raise KeySpaceError if a model is not as it was when its key space was made."""
    _check_code(model)
    if _settings(model) != space.settings:
        raise KeySpaceError(
            "the model's weights, attributes or configuration are others than when its key space was made: "
            "make another one (kv_space), and open a pool with it"
        )


def _settings(model: PreTrainedModel) -> str:
    """Return the digest of what the KV depends on besides the weights, and of sums of these."""
    given = {name: value for name, value in model.config.to_dict().items() if name not in INDIFFERENT}
    said = [given, getattr(model.config, "_attn_implementation", None), type(model).__qualname__]
    said += [transformers.__version__, torch.__version__, model.device.type, _masked_token(model)]
    said += [shortened_products(), list(_attributes(model)), list(_sums(model))]
    return sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _attributes(model: torch.nn.Module) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield each module's name, class, and the numbers, words and tensors that are no parameters of it."""
    for name, module in model.named_modules():
        own = [
            (field, repr(value.tolist() if isinstance(value, torch.Tensor) else value))
            for field, value in sorted(vars(module).items())
            if not field.startswith("_") and field not in INDIFFERENT and isinstance(value, PLAIN)
        ]
        yield name, f"{type(module).__module__}.{type(module).__qualname__}", own


def _sums(model: torch.nn.Module) -> Iterator[tuple[str, str, list[int], str]]:
    """Yield the name, type, shape and a digest of sums of each parameter and buffer.

    It takes less time than computing one token, which also reads all weights, so that it can be done often.
    """
    for name, tensor in sorted([*model.named_parameters(), *model.named_buffers()]):
        plain = tensor.detach().contiguous().reshape(tensor.shape or (1,))
        is_even = (plain.shape[-1] * plain.itemsize) % 8 == (plain.storage_offset() * plain.itemsize) % 8 == 0
        sums = plain.view(torch.int64 if is_even else torch.uint8).sum(-1)
        yield name, str(tensor.dtype), list(tensor.shape), sha256(sums.cpu().numpy()).hexdigest()


def _check_code(model: PreTrainedModel) -> None:
    """Raise KeySpaceError for what a model computes by other code than its packages', or by chance.

    An adapter (peft) may be switched on and off, and a hook may change any number: parameters don't say so.
    """
    if model.training:
        raise KeySpaceError("a model in training leaves out numbers by chance (dropout): call its eval()")
    for name, module in model.named_modules():
        kind = type(module)
        if not _is_known(kind):
            raise KeySpaceError(
                f"{name or 'the model'} is a {kind.__module__}.{kind.__qualname__}: merge adapters, and use "
                "classes of torch and transformers alone"
            )
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        if not all(map(_is_known, hooks)) or _has_own_forward(module):
            raise KeySpaceError(f"{name or 'the model'} has a hook, which may change its KV: remove it")
    modules = {type(module).__module__ for module in model.modules()}
    for place, origin in replaced_functions(modules, _is_package_known):
        raise KeySpaceError(f"{place} is replaced by code of {origin}: use the function of transformers")


def _check_attention(model: PreTrainedModel) -> None:
    """Raise KeySpaceError for attention that is registered under a name, which says nothing of its code."""
    name = getattr(model.config, "_attn_implementation", None)
    attention = ALL_ATTENTION_FUNCTIONS.get(name)
    if "/" in str(name) or (attention is not None and not _is_known(attention)):
        raise KeySpaceError(f"the attention {name!r} is code of its own: use one of transformers'")


def _is_known(code: Any) -> bool:
    """Return whether code is of the known packages, as the hooks by which transformers reads layers."""
    return _is_package_known(str(getattr(code, "__module__", "")))


def _is_package_known(module: str) -> bool:
    return module.partition(".")[0] in KNOWN_CODE


def _has_own_forward(module: torch.nn.Module) -> bool:
    """Return whether a module computes otherwise than its class; what accelerate puts there moves tensors
    alone."""
    hook = getattr(module, "_hf_hook", None)
    moves_tensors = hook is not None and type(hook).__module__.startswith("accelerate.")
    return "forward" in vars(module) and not moves_tensors


def _check_cache(config: Any) -> None:
    kinds = {type(layer).__name__ for layer in DynamicCache(config=config).layers} - {DynamicLayer.__name__}
    if kinds or getattr(config, "is_encoder_decoder", False):
        raise KeySpaceError(
            "only models whose cache keeps the KV of every token are possible, not those with "
            + (", ".join(sorted(kinds)) or "an encoder")
        )


def _check_rope(config: Any) -> None:
    found = sorted(set(rope_types(config.to_dict())) & set(ROPES_OF_LENGTH))
    if found:
        raise KeySpaceError(
            f"with a rotary embedding of type {found[0]!r}, transformers computes the first tokens of a long "
            "prompt otherwise than those of a short one: use this model without the pool"
        )


def _check_inputs(model: PreTrainedModel) -> None:
    """Raise KeySpaceError for a model whose KV depends on more than the prompt's tokens up to a block's
    end."""
    modalities = model.input_modalities
    others = {modalities} if isinstance(modalities, str) else set(modalities)
    if others - {"text"}:
        raise KeySpaceError(
            f"a {type(model).__name__} takes {' and '.join(sorted(others - {'text'}))} besides the prompt's "
            "tokens, which keys do not have: use this model without the pool"
        )
    modules = dict(model.named_modules(), **{"the configuration": model.config})
    names = [
        name
        for name, one in modules.items()
        if getattr(one, "is_causal", True) is False or name.endswith(("encoder_attn", "crossattention"))
    ]
    if names:
        raise KeySpaceError(
            f"attention that is not causal ({names[0]}) sees tokens that come later, or those of an encoder: "
            "use this model without the pool"
        )


def _check_device(model: PreTrainedModel) -> None:
    devices = sorted({str(parameter.device) for parameter in model.parameters()})
    if len(devices) > 1:
        raise KeySpaceError(f"its parameters are on {' and '.join(devices)}: keep the model on one device")


def _try_prefix(model: PreTrainedModel) -> None:
    """Raise KeySpaceError for a model that gives a prompt's first tokens other KV where others follow.

    Some say so nowhere (CPM-Ant, BigBird), so two prompts are computed that differ in their second half.
    """
    half = torch.arange(TRIED_TOKENS, device=model.device)
    caches = [DynamicCache(config=model.config) for _ in range(2)]
    try:
        vocabulary = model.config.get_text_config().vocab_size
        with torch.no_grad():
            for number, cache in enumerate(caches, 1):
                prompt = torch.cat([half, half + number * TRIED_TOKENS]) + vocabulary // 2
                model(prompt[None] % vocabulary, past_key_values=cache)
    except Exception as error:  # of any kind: which one differs between models
        raise KeySpaceError(f"the model can't be tried with a DynamicCache: {error!r}") from None
    if any(cache.get_seq_length() != 2 * TRIED_TOKENS for cache in caches):
        raise KeySpaceError("the model's cache does not have one entry for each token of the prompt")
    begins = [
        [kind[:, :, :TRIED_TOKENS].float() for layer in cache.layers for kind in (layer.keys, layer.values)]
        for cache in caches
    ]
    for one, other in zip(*begins, strict=True):
        tolerance = 8 * torch.finfo(model.dtype).eps * float(one.abs().max())
        if not bool(((one - other).abs() <= tolerance).all()):
            raise KeySpaceError(
                "the KV of a prompt's first tokens depends on those behind them: use this model without the "
                "pool"
            )


def _shape(config: Any) -> tuple[int, int, int]:
    """Return the number of layers, of KV heads in each, and of numbers in each head."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(config.num_hidden_layers), int(heads), int(head)


def store(pool: BlockingPool, tokens: list[int], cache: DynamicCache, model: PreTrainedModel) -> int:
    """Offer the whole blocks of a prompt that `cache` holds, up to one that is NaN; how many are held.

    `model` has to have computed it from these tokens alone, as its weights are: not under autocast, and
    without a mask or positions of one's own, which it does not say afterwards.
    Raises KeySpaceError for a model that has changed since its key space was made, under autocast, and for a
    cache of several sequences, of another kind, offloaded, in another type than the model's, with other heads
    than its configuration says, with layers of different lengths, or with more tokens than are given.
    """
    size = pool.space.block_tokens
    length = min(len(tokens), cache.get_seq_length())
    if length < size:
        return 0
    _check_unchanged(model, pool.space)
    _check_computed(cache, pool.space)
    if cache.get_seq_length() > len(tokens):  # transformers adds a prompt to what a cache holds already
        raise KeySpaceError(
            f"the cache holds {cache.get_seq_length()} tokens, and {len(tokens)} were given: it was computed "
            "from more than these, so give all, or begin with a new cache"
        )
    keys = list(pool.space.block_keys(pool.seal, tokens[:length]))
    blocks = []
    for number, block in enumerate(pool.blocks.references(keys, 0)):
        content = block_kv(cache, number, size)
        if not holds_numbers(content.view(cache.layers[0].keys.dtype)):
            break
        blocks.append([Item(block, memoryview(content.numpy()))])
    return pool.begin_store_blocks(blocks).result()


def _check_computed(cache: DynamicCache, space: KvSpace) -> None:
    kinds = {type(layer).__name__ for layer in cache.layers if type(layer) is not DynamicLayer}
    if kinds:  # one that quantizes KV has the last tokens alone as they were computed
        raise KeySpaceError(f"the cache has {', '.join(sorted(kinds))}: only a DynamicCache is possible")
    if cache.offloading:  # a layer may still be on its way, and others are on another device
        raise KeySpaceError("the cache is offloaded: only one that stays on the model's device is possible")
    tensors = [kind for layer in cache.layers for kind in (layer.keys, layer.values)]
    if len({-1 if tensor is None else tensor.shape[-2] for tensor in tensors}) > 1:
        raise KeySpaceError(
            "the cache's layers hold different numbers of tokens, as after a forward pass that ended "
            "between two layers: what is computed on it is wrong, so begin with a new cache"
        )
    if any(torch.is_autocast_enabled(device) for device in {tensor.device.type for tensor in tensors}):
        raise KeySpaceError("under autocast, a model computes other KV than its weights say")
    for tensor in tensors:
        if tensor.shape[0] != 1:
            raise KeySpaceError(f"the cache holds {tensor.shape[0]} sequences: store one at a time")
        if str(tensor.dtype).removeprefix("torch.") != space.dtype:
            raise KeySpaceError(f"the cache is in {tensor.dtype}, but the model in {space.dtype}")
    shapes = {(tensor.shape[1], tensor.shape[3]) for tensor in tensors}
    token_bytes = sum(tensor.shape[1] * tensor.shape[3] * tensor.itemsize for tensor in tensors)
    if len(shapes) > 1 or token_bytes * space.block_tokens != space.block_bytes:
        raise KeySpaceError(
            f"the cache has heads of {sorted(shapes)} (number, size), and not those that the configuration "
            "says: use this model without the pool"
        )


def block_kv(cache: DynamicCache, number: int, block_tokens: int) -> torch.Tensor:
    """Return bytes of one block of a cache of one sequence: layer, key or value, head, token, dimension."""
    part = slice(number * block_tokens, (number + 1) * block_tokens)
    kv = [kind[0, :, part] for layer in cache.layers for kind in (layer.keys, layer.values)]
    return torch.stack(kv).contiguous().view(torch.uint8).cpu().reshape(-1)


def load(pool: BlockingPool, tokens: list[int], model: PreTrainedModel) -> DynamicCache:
    """Return a cache with the longest prefix of a prompt that the pool has; at least one token is left
    over, and all from the first padding token on.

    Raises KeySpaceError for a model that has changed since the pool's key space was made.
    """
    _check_unchanged(model, pool.space)
    padding = _masked_token(model)
    length = tokens.index(padding) if padding in tokens else len(tokens)
    keys = list(pool.space.block_keys(pool.seal, tokens[: min(length, len(tokens) - 1)]))
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


def _masked_token(model: PreTrainedModel) -> int | None:
    """Return the padding token, if `generate` masks it by itself: KV behind it depends on that."""
    settings = getattr(model, "generation_config", None)
    padding, ends = getattr(settings, "pad_token_id", None), getattr(settings, "eos_token_id", None)
    return None if padding in (ends if isinstance(ends, list) else [ends]) else padding


def _shaped(content: torch.Tensor, model: PreTrainedModel, space: KvSpace) -> torch.Tensor:
    """Return a block as (layer, key or value, head, token, dimension), on the model's device."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    shape = (config.num_hidden_layers, 2, heads, space.block_tokens, -1)
    return content.view(model.dtype).view(shape).to(model.device)
