"""Which models the pool takes from vLLM, and what tells their KV apart."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

import torch
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    MambaSpec,
    MLAAttentionSpec,
    SlidingWindowSpec,
)

from engines.vllm.space import Settings, loads_in_background, make_layout, report_file
from hostlib.engine import KvSpace
from hostlib.protocol.errors import KeySpaceError

SETTINGS = Settings.from_extra({"address": "10.0.0.1", "homes": ["10.0.0.3"]})
SHAPE: dict[str, Any] = {"block_size": 32, "num_kv_heads": 2, "head_size": 64}
FULL = FullAttentionSpec(dtype=torch.float32, **SHAPE)


def space(
    model: str,
    *specs: Any,
    cache_dtype: str = "auto",
    ranks: int = 1,
    is_diffusion: bool = False,
    caches_prefixes: bool = True,
    can_cache_prefixes: bool = True,
    rope: str = "default",
    is_of_transformers: bool = False,
    architecture: str = "LlamaForCausalLM",
    runner: str = "generate",
    returns_experts: bool = False,
    attention: Sequence[tuple[int, object]] = (),
    **parallel: Any,
) -> KvSpace:
    """`attention` has the window and the sinks of each layer."""
    split = {
        "world_size": ranks, "tensor_parallel_size": ranks, "decode_context_parallel_size": 1, "nnodes": 1,
        "distributed_executor_backend": "mp",
    }  # fmt: skip
    config: Any = SimpleNamespace(
        parallel_config=SimpleNamespace(**{**split, **parallel}),
        kv_transfer_config=None,
        diffusion_config=None,
        aux_output_config=SimpleNamespace(enabled=returns_experts),
        model_config=SimpleNamespace(
            model=model,
            is_diffusion=is_diffusion,
            runner_type=runner,
            architectures=[architecture],
            is_prefix_caching_supported=can_cache_prefixes,
            hf_config=SimpleNamespace(to_dict=lambda: {"rope_parameters": {"rope_type": rope}}),
            using_transformers_backend=lambda: is_of_transformers,
        ),
        cache_config=SimpleNamespace(cache_dtype=cache_dtype, enable_prefix_caching=caches_prefixes),
        compilation_config=SimpleNamespace(
            static_forward_context={
                str(number): SimpleNamespace(impl=SimpleNamespace(sliding_window=window, sinks=sinks))
                for number, (window, sinks) in enumerate(attention)
            }
        ),
    )
    groups = [SimpleNamespace(layer_names=["0", "1"], kv_cache_spec=spec) for spec in specs]
    cache: Any = SimpleNamespace(kv_cache_groups=groups, num_blocks=8)
    return make_layout(config, cache, SETTINGS).space


def test_kv_in_another_form_is_told_apart_before_anything_is_shared() -> None:
    """What else decides about the KV is in the keys (`engines.vllm.resolved`)."""
    assert space("model", FULL, cache_dtype="fp8_e5m2").descriptor != space("model", FULL).descriptor
    assert space("model", FULL).descriptor == space("elsewhere/model", FULL).descriptor


def test_latent_kv_is_stored_once_for_all_ranks_and_other_kv_once_a_rank() -> None:
    latent = MLAAttentionSpec(dtype=torch.float32, block_size=32, num_kv_heads=1, head_size=576)
    assert space("model", latent, ranks=4).shard_count == 1
    assert space("model", FULL, ranks=4).shard_count == 4


def test_sinks_beside_windows_are_refused_where_vllm_computes_them_wrong() -> None:
    sinks = torch.zeros(2)
    for attention in ([], [(64, None), (-1, None)], [(-1, sinks), (-1, sinks)], [(64, sinks), (64, sinks)]):
        assert space("model", FULL, attention=attention)
    with pytest.raises(KeySpaceError, match="computes attention sinks beside sliding windows wrong"):
        space("model", FULL, attention=[(64, sinks), (-1, sinks)])


@pytest.mark.parametrize(
    ("specs", "why"),
    [
        (
            [SlidingWindowSpec(dtype=torch.float32, sliding_window=64, **SHAPE)],
            "consists of SlidingWindowSpec",
        ),
        (
            [FULL, SlidingWindowSpec(dtype=torch.float32, sliding_window=64, **SHAPE)],
            "FullAttentionSpec, Sliding",
        ),
        (
            [FULL, MambaSpec(block_size=32, shapes=((4, 4),), dtypes=(torch.float32,))],
            "FullAttentionSpec, MambaSpec",
        ),
        ([ChunkedLocalAttentionSpec(dtype=torch.float32, attention_chunk_size=64, **SHAPE)], "ChunkedLocal"),
        ([FullAttentionSpec(dtype=torch.float32, non_causal=True, **SHAPE)], "sees tokens that come later"),
        ([], "consists of none"),
    ],
)
def test_models_whose_kv_is_not_that_of_each_token_are_refused(specs: list[Any], why: str) -> None:
    """As Qwen3-Next and Nemotron-H, which have a state beside the KV (MambaSpec)."""
    with pytest.raises(KeySpaceError, match=why):
        space("model", *specs)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"world_size": 4, "tensor_parallel_size": 2}, "a model in several stages .pipeline_parallel_size"),
        ({"decode_context_parallel_size": 2}, "split by context"),
        ({"nnodes": 2}, "an engine over several machines is not possible"),
        (
            {"ranks": 2, "distributed_executor_backend": "external_launcher"},
            "each rank has a scheduler of its own",
        ),
    ],
)
def test_a_model_split_otherwise_than_by_tensors_is_refused(changes: dict[str, Any], why: str) -> None:
    """A key that did not name a stage's layers would give one stage's KV for another's."""
    with pytest.raises(KeySpaceError, match=why):
        space("model", FULL, **changes)


def test_a_model_that_writes_blocks_again_is_refused() -> None:
    with pytest.raises(KeySpaceError, match="a diffusion model computes the KV of a block again"):
        space("model", FULL, is_diffusion=True)


def test_one_rank_of_an_external_launcher_is_an_engine_like_any_other() -> None:
    assert space("model", FULL, distributed_executor_backend="external_launcher") == space("model", FULL)


def test_an_engine_that_says_which_experts_computed_each_token_is_refused() -> None:
    """Training asks for the experts. Where KV was loaded, vLLM does not know which had computed it."""
    with pytest.raises(KeySpaceError, match="which experts computed what the pool loads"):
        space("model", FULL, returns_experts=True)


def test_a_model_whose_prefixes_vllm_does_not_cache_is_refused() -> None:
    """As where KV is no function of the tokens before it, or a kernel can't compute behind a prefix."""
    others: list[dict[str, Any]] = [{"architecture": "UnlimitedOCRForCausalLM"}, {"runner": "pooling"}]
    for other in others:
        space("model", FULL, **other)
        with pytest.raises(KeySpaceError, match="vLLM's prefix caching is off"):
            space("model", FULL, caches_prefixes=False, **other)
    assert space("model", FULL, caches_prefixes=False) == space("model", FULL)  # its user turned it off
    with pytest.raises(KeySpaceError, match="behind a prefix"):  # its user turned it on
        space("model", FULL, can_cache_prefixes=False, runner="pooling")


@pytest.mark.parametrize("rope", ["dynamic", "longrope"])
def test_a_model_whose_kv_depends_on_other_prompts_of_its_batch_is_refused(rope: str) -> None:
    """vLLM's own models choose such an embedding once, those of transformers in each step."""
    space("model", FULL, rope=rope)
    space("model", FULL, is_of_transformers=True)
    with pytest.raises(KeySpaceError, match=f"{rope}.* depends on the longest prompt in the batch"):
        space("model", FULL, rope=rope, is_of_transformers=True)


@pytest.mark.parametrize(
    ("loading", "steps", "is_v2", "expected"),
    [
        ("layerwise", 1, False, False),
        ("layerwise", 2, False, True),
        ("layerwise", 1, True, True),
        ("background", 1, False, True),
    ],
)
def test_an_engine_that_would_not_compute_right_what_fails_in_a_step_loads_in_the_background(
    loading: str, steps: int, is_v2: bool, expected: bool
) -> None:
    settings = Settings.from_extra({"address": "10.0.0.1", "homes": ["10.0.0.3"], "loading": loading})
    config: Any = SimpleNamespace(max_concurrent_batches=steps, use_v2_model_runner=is_v2)
    assert loads_in_background(config, settings) == expected


def test_each_process_of_a_data_parallel_group_has_a_report_of_its_own() -> None:
    files = []
    for engine in range(2):
        config: Any = SimpleNamespace(parallel_config=SimpleNamespace(data_parallel_index=engine))
        files += [report_file("report.json", config, worker) for worker in (None, 0, 1)]
        assert report_file(None, config, 1) is None
    assert files[0] == "report.json"
    assert len(set(files)) == 6
