"""Which models the pool takes from vLLM, and what tells their KV apart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

import torch
from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec

from engines.vllm.space import Settings, make_layout
from hostlib.engine import KvSpace
from hostlib.errors import KeySpaceError
from hostlib.seal import PUBLIC_SECRET, Seal

SETTINGS = Settings.from_extra({"address": "10.0.0.1", "homes": ["10.0.0.3"]})
SHAPE: dict[str, Any] = {"block_size": 32, "num_kv_heads": 2, "head_size": 64}


def weights(folder: Path, content: bytes) -> str:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(content)
    return str(folder)


def space(model: str, spec: Any = None, cache_dtype: str = "auto", **changes: Any) -> KvSpace:
    parallel = SimpleNamespace(world_size=1, tensor_parallel_size=1, decode_context_parallel_size=1, nnodes=1)
    described = {"model": model, "revision": None, "hf_overrides": {}, "quantization": None, **changes}
    config: Any = SimpleNamespace(
        parallel_config=parallel,
        kv_transfer_config=None,
        model_config=SimpleNamespace(**described),
        cache_config=SimpleNamespace(cache_dtype=cache_dtype),
    )
    spec = spec or FullAttentionSpec(dtype=torch.float32, **SHAPE)
    group = SimpleNamespace(layer_names=["0", "1"], kv_cache_spec=spec)
    cache: Any = SimpleNamespace(kv_cache_groups=[group], num_blocks=8)
    return make_layout(config, cache, SETTINGS).space


def chain(space: KvSpace) -> list[bytes]:
    return list(space.block_keys(Seal(0, PUBLIC_SECRET), range(64)))


def test_a_model_of_sliding_windows_alone_is_refused(tmp_path: Path) -> None:
    """vLLM has one group of its layers, whose blocks before the window it gives to others."""
    model = weights(tmp_path / "model", b"weights")
    with pytest.raises(KeySpaceError, match="SlidingWindowSpec"):
        space(model, SlidingWindowSpec(dtype=torch.float32, sliding_window=64, **SHAPE))
    assert space(model) == space(model)


@pytest.mark.parametrize(
    "changes",
    [
        {"hf_overrides": {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}},
        {"hf_overrides": weights},
        {"quantization": "fp8"},
        {"cache_dtype": "fp8_e5m2"},
    ],
)
def test_what_changes_the_kv_of_the_same_weights_is_told_apart(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    model = weights(tmp_path / "model", b"weights")
    assert chain(space(model, **changes)) != chain(space(model))
