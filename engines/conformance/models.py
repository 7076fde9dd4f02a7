"""Models with random weights, made on this machine by a seed.

    python -m engines.conformance.models FOLDER SEED     (in vLLM's environment)

All are small. Weights are wide enough for tokens to matter: a wrong block moves log-probabilities by tenths.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

VOCABULARY: Final = 4096
LAYERS: Final = 4
HIDDEN: Final = 256
HEAD: Final = 64
KV_HEADS: Final = 2
LONGROPE_TOKENS: Final = 512
"""Up to this `max_model_len` a LongRoPE model uses its short factors, above it the long ones."""
LLAMA, OTHER_LLAMA, MLA, SLIDING, LONGROPE = "llama", "other-llama", "mla", "sliding-window", "longrope"
_COMMON: Final = {
    "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": 2 * HIDDEN, "bos_token_id": 0,
    "eos_token_id": 1,
}  # fmt: skip


def make_all(folder: Path, seed: int) -> None:
    """Write all models into folders of `folder` that have their names; those that are there stay."""
    makers: dict[str, Callable[[], Any]] = {
        LLAMA: _llama,
        OTHER_LLAMA: _llama,
        MLA: _mla,
        SLIDING: _sliding_window,
        LONGROPE: _longrope,
    }
    for number, (name, make) in enumerate(makers.items()):
        if (folder / name / "config.json").exists():
            continue
        _save(make, seed + number, folder / name)


def _save(make: Callable[[], Any], seed: int, folder: Path) -> None:
    import torch

    torch.manual_seed(seed)
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    make().eval().save_pretrained(part)
    part.rename(folder)


def _llama() -> Any:
    """Return a model of grouped-query attention: two query heads share a KV head."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            **_COMMON,
            num_hidden_layers=LAYERS,
            num_attention_heads=HIDDEN // HEAD,
            num_key_value_heads=KV_HEADS,
            head_dim=HEAD,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            initializer_range=0.1,
        )
    )


def _mla() -> Any:
    """Return a model of DeepSeek's latent attention, of the sizes that vLLM's kernels know."""
    from transformers import DeepseekV2Config, DeepseekV2ForCausalLM

    return DeepseekV2ForCausalLM(
        DeepseekV2Config(
            **_COMMON,
            moe_intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=16,
            num_key_value_heads=16,
            kv_lora_rank=512,
            q_lora_rank=None,
            qk_rope_head_dim=64,
            qk_nope_head_dim=128,
            v_head_dim=128,
            n_routed_experts=4,
            n_shared_experts=1,
            num_experts_per_tok=2,
            first_k_dense_replace=2,
            max_position_embeddings=4096,
            initializer_range=0.05,
        )
    )


def _sliding_window() -> Any:
    """Return a model like Gemma 3: five layers of a sliding window, then one that sees all tokens."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            **{**_COMMON, "bos_token_id": 2, "pad_token_id": 0},
            num_hidden_layers=6,
            num_attention_heads=HIDDEN // HEAD,
            num_key_value_heads=KV_HEADS,
            head_dim=HEAD,
            sliding_window=64,
            max_position_embeddings=4096,
            initializer_range=0.08,
        )
    )


def _longrope() -> Any:
    """Return a model like Phi-3, whose rotary factors depend on the longest prompt that the engine is started
    for."""
    from transformers import Phi3Config, Phi3ForCausalLM

    half = HEAD // 2
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * half,
        "long_factor": [1.0 + index / 4 for index in range(half)],
        "original_max_position_embeddings": LONGROPE_TOKENS,
    }
    return Phi3ForCausalLM(
        Phi3Config(
            **_COMMON,
            num_hidden_layers=LAYERS,
            num_attention_heads=HIDDEN // HEAD,
            num_key_value_heads=KV_HEADS,
            max_position_embeddings=4096,
            original_max_position_embeddings=LONGROPE_TOKENS,
            rope_parameters=rope,
            pad_token_id=0,
            tie_word_embeddings=False,
            initializer_range=0.08,
        )
    )


if __name__ == "__main__":
    make_all(Path(sys.argv[1]), int(sys.argv[2]))
