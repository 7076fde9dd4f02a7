"""Which weights a model folder holds: KV cache of other weights is wrong even where every size agrees."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from hostlib.errors import KeySpaceError

WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
SAMPLE_BYTES = 1 << 16
SAMPLES = 16
"""Of each file, evenly spread: fine-tuning changes them everywhere, and reading all would take minutes."""


def model_identity(model: str, revision: str | None = None) -> str:
    """A name for the weights: from samples of them for a folder, name and revision for a model of a hub."""
    folder = Path(model)
    if not folder.is_dir():
        return f"{model}@{revision or 'main'}"
    files = sorted(path for pattern in WEIGHTS for path in folder.glob(pattern))
    if not files:
        raise KeySpaceError(f"{folder}: no weights found ({', '.join(WEIGHTS)})")
    seen = blake2b(digest_size=16)
    for path in files:
        size = path.stat().st_size
        seen.update(f"{path.name}:{size}\n".encode())
        with path.open("rb") as weights:
            for sample in range(SAMPLES):
                weights.seek(sample * max(0, size - SAMPLE_BYTES) // (SAMPLES - 1))
                seen.update(weights.read(SAMPLE_BYTES))
    return f"weights:{seen.hexdigest()}"
