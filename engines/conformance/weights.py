"""Files of weights: adapters written by a seed, and single tensors edited in place."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from engines.conformance.models import HEAD, HIDDEN, KV_HEADS, LAYERS

RANK = 8
"""Rank of an adapter's matrices."""


def write_adapter(folder: Path, seed: int) -> None:
    """Write a LoRA adapter of the Llama-like model to `folder`, in place of what is there."""
    import numpy as np
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    choice = np.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        for name, width in (("q_proj", HIDDEN), ("v_proj", KV_HEADS * HEAD)):
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            first, second = choice.standard_normal((RANK, HIDDEN)), choice.standard_normal((width, RANK))
            tensors[f"{prefix}.lora_A.weight"] = first.astype(np.float32)
            tensors[f"{prefix}.lora_B.weight"] = (second / 5).astype(np.float32)
    save_file(tensors, str(folder / "adapter_model.safetensors"))
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "llama", "bias": "none",
        "r": RANK, "lora_alpha": 2 * RANK, "lora_dropout": 0.0, "target_modules": ["q_proj", "v_proj"],
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config))


def edit_tensor(folder: Path, name: str) -> None:
    """Multiply every second number of one float32 tensor of a model by -3; the files keep their sizes."""
    import numpy as np

    (path,) = folder.glob("*.safetensors")
    with path.open("r+b") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        start, end = json.loads(file.read(header_bytes))[name]["data_offsets"]
        file.seek(8 + header_bytes + start)
        numbers = np.frombuffer(file.read(end - start), dtype=np.float32).copy()
        numbers[::2] *= -3
        file.seek(8 + header_bytes + start)
        file.write(numbers.tobytes())
