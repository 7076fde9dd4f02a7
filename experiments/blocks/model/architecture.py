"""The small model: Llama's architecture with grouped-query attention and rotary positions, a token a byte.

Three heads of the first layer begin as heads that look at the token before, at the one before that, and at
the last capital letter (who is spoken of): heads that recall are built on such, and small models take very
long to find them (Olsson et al., "In-context Learning and Induction Heads", 2022). All of it is
trained.
"""

from __future__ import annotations

from typing import Final

import torch
from transformers import LlamaConfig, LlamaForCausalLM

HIDDEN: Final = 128
LAYERS: Final = 4
HEADS: Final = 4
KV_HEADS: Final = 2
HEAD_DIM: Final = 32
THETA: Final = 1e5
MAX_TOKENS: Final = 1024

_CONSTANT: Final = 0.1
"""Of every embedding's first dimension: what heads that look at positions alone can rest on."""
_SHARPEST: Final = 5
"""Rotary frequencies, from the highest on, by which the first two heads tell positions apart."""
_STRENGTH: Final = 1.6
"""Of the first two heads."""
_RECENCY: Final = {7: 1.8, 8: 3.0}
"""Weights of slow frequencies, by which the third head prefers the nearest capital."""


def make_model(seed: int) -> LlamaForCausalLM:
    """Return the untrained model; the same weights for the same seed."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=HIDDEN,
        intermediate_size=5 * HIDDEN // 2,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=MAX_TOKENS,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        tie_word_embeddings=True,
        initializer_range=0.03,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        _look_back(model)
        _look_for_capitals(model)
    return model


def _look_back(model: LlamaForCausalLM) -> None:
    """Query heads 0 and 1 of layer 0 share a KV head; they begin by looking one and two tokens back."""
    half = HEAD_DIM // 2
    model.model.embed_tokens.weight[:, 0] = _CONSTANT
    attention = model.model.layers[0].self_attn
    queries, keys = attention.q_proj.weight, attention.k_proj.weight
    angles = THETA ** (-torch.arange(half) / half)
    strength = _STRENGTH * (torch.arange(half) < _SHARPEST)
    keys[:HEAD_DIM] *= 0.1
    queries[: 2 * HEAD_DIM] *= 0.1
    keys[:half, 0] = strength
    for head in range(2):
        first = head * HEAD_DIM
        turn = angles * (head + 1)
        queries[first : first + half, 0] = strength * torch.cos(turn)
        queries[first + half : first + HEAD_DIM, 0] = -strength * torch.sin(turn)


def _look_for_capitals(model: LlamaForCausalLM) -> None:
    """Query head 2 of layer 0, with the second KV head; the embedding's second dimension marks capitals."""
    embedding = model.model.embed_tokens.weight
    embedding[:, 1] = 0.0
    embedding[ord("A") : ord("Z") + 1, 1] = _CONSTANT
    attention = model.model.layers[0].self_attn
    keys = attention.k_proj.weight[HEAD_DIM : 2 * HEAD_DIM]
    queries = attention.q_proj.weight[2 * HEAD_DIM : 3 * HEAD_DIM]
    keys *= 0.1
    queries *= 0.1
    for frequency, weight in _RECENCY.items():
        keys[frequency, 1] = weight
        queries[frequency, 0] = weight
