"""Loading of a Hugging Face causal model on the CPU, and conversion of its KV cache for the codecs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache

from commands.errors import ExperimentError
from kvcodec import Layout

BYTES: Final = 256
"""Size of the vocabulary of a model whose tokens are bytes, and which needs no tokenizer."""

Floats = npt.NDArray[np.float32]
Tokenize = Callable[[bytes], list[int]]


class ModelError(ExperimentError):
    """Model that can't be used; the message says what was expected."""


@dataclass(frozen=True)
class Transformer:
    """Model, the layout of its KV, and the function that turns text into its tokens."""

    name: str
    model: Any
    layout: Layout
    tokenize: Tokenize


def load_transformer(folder: Path) -> Transformer:
    """Load the causal model in a folder; raises ModelError if it has none with full attention throughout."""
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no config.json: MODEL is the folder of a Hugging Face model")
    try:
        config = AutoConfig.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    except (ValueError, OSError, KeyError) as error:
        raise ModelError(f"{folder}: transformers can't load it as a causal model: {error}") from None
    if getattr(config, "num_key_value_heads", None) is None or getattr(config, "sliding_window", None):
        raise ModelError(
            f"{folder}: models of type {config.model_type!r} are not covered; expected full attention with "
            "num_key_value_heads in config.json, as Llama's and Qwen's have"
        )
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    identity = f"{config.model_type} {_weights_digest(folder)}"
    layout = Layout(identity, config.num_hidden_layers, config.num_key_value_heads, head_dim)
    return Transformer(folder.name, model, layout, _tokenizer(folder, config.vocab_size))


def _tokenizer(folder: Path, vocabulary: int) -> Tokenize:
    if any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model")):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return lambda text: list(tokenizer.encode(text.decode("latin-1"), add_special_tokens=False))
    if vocabulary == BYTES:
        return list
    raise ModelError(
        f"{folder} has no tokenizer, and its {vocabulary} tokens are no bytes: expected tokenizer.json"
    )


def _weights_digest(folder: Path) -> str:
    digest = blake2b(digest_size=16)
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        with path.open("rb") as file:
            while part := file.read(1 << 22):
                digest.update(part)
    return digest.hexdigest()


def kv_of(cache: DynamicCache) -> Floats:
    """Return the cache of a batch as float32 (batch, layers, 2, tokens, kv_heads * head_dim)."""
    layers = [torch.stack((layer.keys, layer.values), dim=1) for layer in cache.layers]
    kv = torch.stack(layers, dim=1)  # batch, layer, kind, head, token, dimension
    batch, depth, _, heads, tokens, dim = kv.shape
    flat = kv.permute(0, 1, 2, 4, 3, 5).reshape(batch, depth, 2, tokens, heads * dim)
    return np.ascontiguousarray(flat.to(torch.float32).numpy())


def cache_of(kv: Floats, of: Transformer) -> DynamicCache:
    """Return a cache that holds a batch's `kv`, as `kv_of` gives it."""
    cache = DynamicCache(config=of.model.config)
    batch, layers, _, tokens, _ = kv.shape
    shape = (batch, layers, 2, tokens, of.layout.kv_heads, of.layout.head_dim)
    heads_first = torch.from_numpy(kv.reshape(shape)).permute(0, 1, 2, 4, 3, 5).contiguous()
    for layer in range(layers):
        cache.update(heads_first[:, layer, 0], heads_first[:, layer, 1], layer)
    return cache
