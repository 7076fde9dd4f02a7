"""Which weights a model folder holds: KV cache of other weights is wrong even where every size agrees."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

from hostlib.errors import KeySpaceError

WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
SAMPLE_BYTES = 1 << 16
SAMPLES = 16
"""Of each file, evenly spread: fine-tuning changes them everywhere, and reading all would take minutes."""
INDIFFERENT = ("_name_or_path", "transformers_version", "use_cache")
"""Parts of a configuration that do not change what the weights compute."""


def model_identity(model: str, revision: str | None = None) -> str:
    """A name for the weights: name and revision for a model of a hub; for a folder from samples of them and
    their configuration, as the same weights have other KV under another rope scaling."""
    folder = Path(model)
    if not folder.is_dir():
        return f"{model}@{revision or 'main'}"
    files = sorted(path for pattern in WEIGHTS for path in folder.glob(pattern))
    if not files:
        raise KeySpaceError(f"{folder}: no weights found ({', '.join(WEIGHTS)})")
    seen = blake2b(_configuration(folder), digest_size=16)
    for path in files:
        size = path.stat().st_size
        seen.update(f"{path.name}:{size}\n".encode())
        with path.open("rb") as weights:
            for sample in range(SAMPLES):
                weights.seek(sample * max(0, size - SAMPLE_BYTES) // (SAMPLES - 1))
                seen.update(weights.read(SAMPLE_BYTES))
    return f"weights:{seen.hexdigest()}"


def _configuration(folder: Path) -> bytes:
    """What a model's or an adapter's configuration says, in whatever order and spacing."""
    said = []
    for path in (folder / "config.json", folder / "adapter_config.json"):
        try:
            given = json.loads(path.read_bytes()) if path.exists() else {}
        except (ValueError, RecursionError) as error:
            raise KeySpaceError(f"{path} can't be read: {error}") from None
        if isinstance(given, dict):
            given = {name: value for name, value in given.items() if name not in INDIFFERENT}
        said.append(given)
    return json.dumps(said, sort_keys=True).encode()
