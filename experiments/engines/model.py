"""Model that is made on this machine without a download: Llama's architecture, random weights.

    python -m experiments.engines.model FOLDER     (in the engines' environment)

Multi-query attention keeps its KV cache small compared with the work of computing it. At 1 Gbit/s and on two
cores, fetching a block must take less time than computing it, as with a large model on a GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

VOCABULARY: Final = 4096
LAYERS: Final = 12
HEAD: Final = 64
KV_HEADS: Final = 1
MAX_TOKENS: Final = 8192
NAME: Final = "llama-mqa-182m-random"


def make(folder: Path, hidden: int = 1024, layers: int = LAYERS) -> None:
    """Write the model to `folder`; the same weights every time."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // HEAD,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD,
        max_position_embeddings=MAX_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).eval().save_pretrained(folder)


def main() -> int:
    """Read the command line and make the model. Returns exit code 0."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.engines.model",
        description="Make a Llama of random weights (730 MB), in the engines' environment.",
    )
    parser.add_argument("folder", type=Path, help="folder that the model is written to")
    make(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
