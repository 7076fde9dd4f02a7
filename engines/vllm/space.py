"""vLLM's configuration as a key space: scheduler and workers derive the same from it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING, Any

import vllm
from vllm import envs
from vllm.config import get_current_vllm_config_or_none
from vllm.platforms import current_platform
from vllm.v1.executor import Executor, UniProcExecutor
from vllm.v1.kv_cache_interface import FullAttentionSpec, MLAAttentionSpec

from engines.model_configuration import ROPES_OF_LENGTH, rope_types
from hostlib.engine import KvSpace, PoolConfig
from hostlib.engine.space import UNNAMED
from hostlib.protocol.errors import ConfigError, KeySpaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vllm.config import VllmConfig
    from vllm.v1.kv_cache_interface import KVCacheConfig

DEFAULT_OBJECTS = 2
LOADING = ("layerwise", "background")
PLAIN_MODELS = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
PLAIN_MACHINES = {"x86_64", "aarch64"}
_OWN = ("key_space", "objects_per_block", "loading", "recompute_ms", "mooncake_events")


@dataclass(frozen=True)
class Settings:
    """kv_connector_extra_config: the pool's settings (`PoolConfig`), and these."""

    pool: PoolConfig
    key_space: str | None
    """The name under which engines share blocks; the model's name by default."""
    objects_per_block: int
    """A block's layers are stored as so many objects, which are loaded one after the other."""
    loading: str
    """"layerwise": the forward pass starts at once and waits layer by layer; "background": the request waits
    until all is there, and others go on."""
    recompute_ms: int
    """Milliseconds of computing one block, for the pool's policy; 0 where that is not known."""
    mooncake_events: str | None = None
    """Endpoint of ZeroMQ where events are published in Mooncake's schema; None for nowhere."""

    @classmethod
    def from_extra(cls, extra: dict[str, Any]) -> Settings:
        """Read the settings; raises ConfigError that names what is wrong."""
        given = {name: value for name, value in extra.items() if name not in _OWN}
        pool = PoolConfig.from_mapping(given, others=_OWN)
        loading = extra.get("loading", LOADING[0])
        if loading not in LOADING:
            raise ConfigError(f"loading is {' or '.join(LOADING)}, not {loading!r}")
        numbers = {"objects_per_block": extra.get("objects_per_block", DEFAULT_OBJECTS)}
        numbers["recompute_ms"] = extra.get("recompute_ms", 0)
        for name, least in (("objects_per_block", 1), ("recompute_ms", 0)):
            if not isinstance(numbers[name], int) or numbers[name] < least:
                raise ConfigError(f"{name} is a whole number from {least} on, not {numbers[name]!r}")
        endpoint = extra.get("mooncake_events")
        if not isinstance(endpoint, str | None):
            raise ConfigError(f"mooncake_events is an endpoint as tcp://*:5557, not {endpoint!r}")
        return cls(pool, extra.get("key_space"), loading=loading, mooncake_events=endpoint, **numbers)


@dataclass(frozen=True)
class Layout:
    """Arrangement of vLLM's KV tensors as objects."""

    space: KvSpace
    groups: tuple[tuple[str, ...], ...]
    """Names of the layers in each object, in order."""
    layer_bytes: dict[str, int]
    """Bytes of one block, by layer."""
    num_blocks: int
    rank: int = 0
    """Rank of the worker whose tensors these are."""


def make_layout(config: VllmConfig, kv_cache: KVCacheConfig, settings: Settings, rank: int = 0) -> Layout:
    """Return an engine's layout; raises KeySpaceError for what the pool can't hold (docs/engines.md)."""
    parallel = config.parallel_config
    if config.diffusion_config is not None or config.model_config.is_diffusion:
        raise KeySpaceError(
            "a diffusion model computes the KV of a block again while it writes it: use it without the pool"
        )
    _check_ranks(config)
    if getattr(getattr(config, "aux_output_config", None), "enabled", False):
        raise KeySpaceError(
            "vLLM does not know which experts computed what the pool loads, and would end at the first hit: "
            "use enable_return_routed_experts without the pool"
        )
    _check_policy(config)
    _check_prefixes(config)
    _check_rope(config.model_config)
    group = _only_group(kv_cache)
    names = tuple(group.layer_names)
    _check_sinks(config, names)
    page_bytes = group.kv_cache_spec.page_size_bytes
    parts = min(settings.objects_per_block, len(names))
    bounds = [index * len(names) // parts for index in range(parts + 1)]
    groups = tuple(names[start:end] for start, end in pairwise(bounds))
    model = config.model_config
    space = KvSpace(
        name=settings.key_space or Path(model.model).name,
        model=UNNAMED,
        layout=_layout_name(config, group.kv_cache_spec, len(names)),
        dtype=str(group.kv_cache_spec.dtype).removeprefix("torch."),
        block_tokens=group.kv_cache_spec.block_size,
        object_bytes=tuple(len(part) * page_bytes for part in groups),
        tensor_parallel=parallel.tensor_parallel_size,
        shards=1 if type(group.kv_cache_spec) is MLAAttentionSpec else None,
    )
    return Layout(space, groups, dict.fromkeys(names, page_bytes), kv_cache.num_blocks, rank)


def _check_policy(config: VllmConfig) -> None:
    """Raise ConfigError if a load that fails would fail its request.

    A connector within a MultiConnector has settings of its own, but vLLM does what the MultiConnector's say.
    In a worker, these are in the configuration that vLLM has as the current one.
    """
    for one in (config, get_current_vllm_config_or_none()):
        transfer = None if one is None else one.kv_transfer_config
        if transfer is not None and transfer.kv_load_failure_policy != "recompute":
            raise ConfigError(
                "set kv_load_failure_policy='recompute' in KVTransferConfig, also in that of a "
                "MultiConnector: with 'fail', a block that the pool has lost would fail the request"
            )


def _check_ranks(config: VllmConfig) -> None:
    """Raise KeySpaceError for a model that is split otherwise than by one scheduler over one machine."""
    parallel = config.parallel_config
    if parallel.world_size != parallel.tensor_parallel_size or parallel.decode_context_parallel_size > 1:
        raise KeySpaceError(
            "a model in several stages (pipeline_parallel_size) or split by context "
            "(decode_context_parallel_size) is not possible: split it by tensor_parallel_size alone"
        )
    if parallel.nnodes > 1:
        raise KeySpaceError("an engine over several machines is not possible: its workers share one address")
    if parallel.world_size > 1 and not has_worker_processes(config):
        raise KeySpaceError(
            "with external_launcher each rank has a scheduler of its own, and what the pool answers them may "
            "differ, so that they would compute different steps: use distributed_executor_backend 'mp'"
        )


def _check_prefixes(config: VllmConfig) -> None:
    """Raise KeySpaceError where vLLM can't compute behind a prefix, or may have turned this off.

    It does so where KV depends on more than the tokens before it, and where a kernel can't compute behind KV
    that is there already. For plain models on usual machines it does not, so there the user did.
    """
    model = config.model_config
    if not getattr(model, "is_prefix_caching_supported", True):  # its user may have turned it on all the same
        raise KeySpaceError(
            "vLLM can't compute this model behind a prefix that is there already, as with pooling over all "
            "tokens (MEAN, CLS, STEP): use it without the pool"
        )
    is_plain = (
        model.runner_type == "generate"
        and set(model.architectures) <= PLAIN_MODELS
        and not envs.VLLM_BATCH_INVARIANT
        and machine() in PLAIN_MACHINES
    )
    if not config.cache_config.enable_prefix_caching and not is_plain:
        raise KeySpaceError(
            "vLLM's prefix caching is off: turn it on (enable_prefix_caching). If vLLM turns it off itself, "
            "KV of this model or backend can't be used again: use it without the pool"
        )


def _check_rope(model: Any) -> None:
    """Raise KeySpaceError where a prompt's KV depends on the lengths of those that are computed beside it.

    vLLM's own models choose a rotary embedding once, by `max_model_len`; those of transformers in each step.
    """
    found = set(rope_types(model.hf_config.to_dict())) & set(ROPES_OF_LENGTH)
    if found and model.using_transformers_backend():
        raise KeySpaceError(
            f"with a rotary embedding of type {min(found)!r}, a model of transformers (model_impl) computes "
            "KV that depends on the longest prompt in the batch: use it without the pool"
        )


def report_file(report: str | None, config: VllmConfig, worker: int | None) -> str | None:
    """Return the file for the counters of one process: none is that of another one of the same settings.

    `worker` is the rank of a worker in a process of its own; None for the process of the engine.
    """
    engine = config.parallel_config.data_parallel_index
    if report is not None and engine:
        report = f"{report}.engine{engine}"
    if report is not None and worker is not None:
        report = f"{report}.worker{worker}"
    return report


def loads_in_background(config: VllmConfig, settings: Settings) -> bool:
    """Return whether requests wait for their KV outside the batch.

    They do so whatever `settings` say where vLLM schedules steps ahead (async scheduling). If a layer-wise
    load fails there, vLLM 0.32 counts the next step's token, which was computed on what did not arrive, and
    then computes on a token that there is not: on a CPU that ends the engine.
    They do so with vLLM's V2 runner, too, which does not compute right what failed to load in a step.
    """
    return settings.loading == "background" or config.max_concurrent_batches > 1 or uses_v2_runner(config)


def applies_others_adapters(config: VllmConfig) -> bool:
    """Return whether requests without an adapter are computed with that of another one in the same batch.

    On CPUs, vLLM 0.32 takes their number of an adapter, -1, for the last one (`lora/ops/torch_ops`).
    """
    return config.lora_config is not None and current_platform.device_type == "cpu"


def has_worker_processes(config: VllmConfig) -> bool:
    """Return whether vLLM's workers are in processes of their own, and not in that of its scheduler."""
    return not issubclass(Executor.get_class(config), UniProcExecutor)


def uses_v2_runner(config: VllmConfig) -> bool:
    """Return whether vLLM computes with its V2 runner.

    After a load that failed in a step, that goes on from the token where it stood and not from the one to
    which vLLM's scheduler has gone back (vllm 49250).
    """
    return bool(getattr(config, "use_v2_model_runner", True))  # True where a version does not say


def _only_group(kv_cache: KVCacheConfig) -> Any:
    """Return the group of layers whose KV is stored.

    Sliding windows and local attention beside full attention are in one group with it: for a connector like
    this one, vLLM keeps the KV of all tokens for such layers, too. Raises KeySpaceError for other models: of
    windows alone, vLLM gives blocks back while the request runs; a state is not the KV of a block's tokens.
    """
    specs = [group.kv_cache_spec for group in kv_cache.kv_cache_groups]
    if len(specs) != 1 or type(specs[0]) not in (FullAttentionSpec, MLAAttentionSpec):
        kinds = ", ".join(sorted({type(spec).__name__ for spec in specs})) or "none"
        raise KeySpaceError(
            f"this model's KV cache consists of {kinds}; only full attention is possible, alone or with "
            "sliding windows that vLLM keeps like it: use this model without the pool"
        )
    if getattr(specs[0], "non_causal", False):
        raise KeySpaceError(
            "this model's attention sees tokens that come later, so that a block's KV is not that of the "
            "tokens up to it: use this model without the pool"
        )
    return kv_cache.kv_cache_groups[0]


def _check_sinks(config: VllmConfig, names: Sequence[str]) -> None:
    """Raise KeySpaceError where vLLM's own answers are wrong with a connector like this one.

    That is so on CPUs with attention sinks in layers of which some have a window: with them in one group,
    vLLM 0.32 plans the attention without the window, and answers by chance. Only a process that has loaded
    the model knows its layers.
    """
    layers = getattr(getattr(config, "compilation_config", None), "static_forward_context", {})
    attention = [layers[name].impl for name in names if hasattr(layers.get(name), "impl")]
    windows = {getattr(one, "sliding_window", None) for one in attention}
    has_sinks = any(getattr(one, "sinks", None) is not None for one in attention)
    if current_platform.device_type == "cpu" and has_sinks and len(windows) > 1:
        raise KeySpaceError(
            "on CPUs, vLLM computes attention sinks beside sliding windows wrong where a connector keeps the "
            "KV of all tokens: use this model without the pool"
        )


def _layout_name(config: VllmConfig, spec: Any, layers: int) -> str:
    """Return the name of whatever may order a block's bytes differently. On CPU that depends on the
    instruction set."""
    parts = [f"vllm {'.'.join(vllm.__version__.split('.')[:2])}", current_platform.device_type]
    if spec.kv_quant_mode.value:
        parts.append(f"quantized {spec.kv_quant_mode.name}")
    if "e5m2" in config.cache_config.cache_dtype:  # in memory, e4m3 has the same dtype
        parts.append("e5m2")
    parts += [f"{layers} layers", f"{spec.num_kv_heads} heads", f"of {spec.head_size}"]
    backend = getattr(getattr(config, "attention_config", None), "backend", None)
    parts.append(f"attention {getattr(backend, 'name', backend)}")
    if current_platform.device_type == "cpu":
        from vllm.v1.attention.backends import cpu_attn

        parts.append(cpu_attn._get_attn_isa(spec.dtype, spec.block_size, spec.head_size))
    return ", ".join(parts)
