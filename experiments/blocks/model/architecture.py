"""Small model: Llama's architecture with grouped-query attention and rotary positions; tokens are bytes.

Three heads of the first layer are initialised to attend to the token before, to the one before that, and to
the last capital letter, which names the subject. Heads that recall build on such heads, and small models take
very long to find them (Olsson et al., "In-context Learning and Induction Heads", 2022). Training may change
all weights.
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
"""Value of every embedding's first dimension, for heads that attend by position alone."""
_SHARPEST: Final = 5
"""Number of rotary frequencies, from the highest on, by which the first two heads tell positions apart."""
_STRENGTH: Final = 1.6
"""Weight of each of these frequencies in the first two heads."""
_RECENCY: Final = {7: 1.8, 8: 3.0}
"""Weights of slow frequencies, by index, with which the third head prefers the nearest capital."""


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
    """Initialise query heads 0 and 1 of layer 0, which share a KV head, to attend one and two tokens back."""
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
    """Initialise query head 2 of layer 0, with the second KV head, to attend to the nearest capital.

    The embedding's second dimension marks capitals.
    """
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
