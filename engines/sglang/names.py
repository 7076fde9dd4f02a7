"""Name of an SGLang server's pages: weights, options, environment, what it runs on, host memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import torch

from engines.identity import in_background, loaded_identity, located, process_start_s
from engines.model_configuration import ROPES_OF_LENGTH, entries, remote_code, rope_types
from engines.paths import is_path
from engines.replaced import loaded_modules, replaced_functions
from engines.software import library_environment, plugin_packages, plugins, versions, without_name
from hostlib.protocol.errors import ConfigError, KeySpaceError

HARMLESS_OPTIONS: Final = (
    "*_port", "*_port_range", "*_timeout", "admin_api_key", "api_key", "base_gpu_id", "chat_template",
    "chunked_prefill_size", "crash_dump_folder", "cuda_graph_*", "dist_init_addr", "dist_timeout",
    "download_dir", "enable_metrics*", "file_storage_path", "gpu_id_step", "hicache_*", "host", "log_*",
    "max_prefill_tokens", "max_queued_requests", "max_running_requests", "max_total_tokens",
    "mem_fraction_static", "model_path", "nnodes", "node_rank", "port", "random_seed", "reasoning_parser",
    "revision", "sampling_defaults", "schedule_*", "served_model_name", "show_time_cost",
    "skip_server_warmup",
    "tokenizer_*", "tool_call_parser", "watchdog_timeout",
)  # fmt: skip
"""Options of a server that change neither the KV of given tokens nor the order of its bytes, as patterns."""
FROM_FILES: Final = (
    "auto", "pt", "safetensors", "npcache", "sharded_state", "gguf", "bitsandbytes", "mistral", "layered",
    "fastsafetensors", "instanttensor", "runai_streamer",
)  # fmt: skip
"""Load formats whose weights are those of the files in the model's folder."""
OUTSIDE: Final = (
    "checkpoint_engine_wait_weights_before_ready", "custom_weight_loader", "debug_tensor_dump_input_file",
    "decrypted_config_file", "decrypted_draft_config_file", "dllm_algorithm", "forward_hooks",
    "kt_weight_path", "lora_paths", "modelexpress_config", "modelopt_checkpoint_restore_path",
    "modelopt_quant", "quantization_param_path", "rl_quant_profile", "speculative_token_map",
    "uno_lora_path",
)  # fmt: skip
"""Options by which weights, their scales or code come from elsewhere than the model's folder, or KV of a
block is computed several times."""
NOTED: Final = ("enable_return_indexer_topk", "enable_return_routed_experts")
"""Options by which SGLang returns what it notes of each token while it computes it."""
OFFLOADS: Final = "disaggregation_decode_enable_offload_kvcache"
PREFIXES: Final = ("AITER_", "ASCEND_", "SGLANG_", "SGL_", "TRTLLM_")
"""Prefixes of environment variables that decide what SGLang and its kernels compute, beside those that it
declares."""
HARMLESS_ENVIRONMENT: Final = (
    "*_API_KEY", "*_HOST", "*_HOSTNAME", "*_IP", "*_INTERVAL", "*_PORT", "*_PORT_BASE", "*_TIMEOUT",
    "*_TIMEOUT_*", "*_URL", "ASCEND_*_PHY_ID", "MOONCAKE_*", "SGLANG_CACHE_DIR", "SGLANG_*COREDUMP*",
    "SGLANG_CPU_OMP_THREADS_BIND", "SGLANG_DG_CACHE_DIR", "SGLANG_DISAGG*", "SGLANG_ENABLE_METRICS_*",
    "SGLANG_FLASHINFER_WORKSPACE_SIZE", "SGLANG_GRPC_*", "SGLANG_HICACHE_*", "SGLANG_JIT_LOG_LEVEL",
    "SGLANG_LOG_*", "SGLANG_MOONCAKE_*", "SGLANG_PROFILE_*", "SGLANG_RUN_ID",
    "SGLANG_TOOL_*", "SGLANG_TORCH_PROFILER_*", "SGLANG_TRACE_*", "SGLANG_ZMQ_*",
)  # fmt: skip
"""Patterns of those variables that change neither the KV of given tokens nor the order of its bytes."""
OUTSIDE_ENVIRONMENT: Final = (
    "SGLANG_DEBUG_REVERT_PR", "SGLANG_EXTERNAL_MODEL_PACKAGE", "SGLANG_QWEN4_PLE_FILE_DIR",
)  # fmt: skip
"""Environment variables by which code or weights come from elsewhere than SGLang and the model's folder."""
CONFIGURATIONS: Final = ("config.json", "params.json")
"""A model's own configuration; Mistral's models may have the second one, of which SGLang makes the first."""
PLUGINS: Final = ("sglang.srt.platforms", "sglang.srt.plugins")
PACKAGES: Final = ("sglang", "torch")
KNOWN_CODE: Final = ("sglang", "torch", "transformers")
"""Packages whose code their version names."""
MEDIA: Final = ("audio", "image", "mm_", "sound", "speech", "thinker", "video", "vision", "visual")
"""Words in the configuration of models that take images or sounds."""
POOL_PROPERTIES: Final = (
    "layout", "dtype", "page_size", "layer_num", "head_num", "head_dim", "v_head_dim", "kv_lora_rank",
    "qk_rope_head_dim", "kv_cache_dim", "start_layer", "end_layer", "size_per_token",
)  # fmt: skip
"""Properties of a pool of host memory that say the order of a page's bytes. It must have the first three."""


def begin_naming(pool: Any) -> Future[str]:
    """Return a future of the name under which pages of a server with this pool of host memory are alike.

    It raises KeySpaceError, with the reason, if it is not certain what the pages hold.
    """
    is_from_the_start = had_storage()
    return in_background(lambda: _name(pool, is_from_the_start))


def check_answers() -> None:
    """Raise ConfigError for options by which SGLang returns what it does not know of loaded tokens.

    It would return what it noted of the tokens that had their places in its memory before. Also raised for
    one by which a decode server stores what no other server finds, and it never looks for.
    """
    with suppress(KeySpaceError):  # without its options, pages have no name either
        asked = [name for name in NOTED if _options().get(name)]
        if asked:
            raise ConfigError(
                f"SGLang notes it while it computes, not of loaded tokens: use {asked[0]} without the pool"
            )
        if _options().get(OFFLOADS):
            raise ConfigError(
                f"no other server would find what a decode server computes: leave {OFFLOADS} off"
            )


def had_storage() -> bool:
    """Return whether the server has had a storage backend from its start on."""
    try:
        return bool(_options().get("hicache_storage_backend"))
    except KeySpaceError:
        return False


def _name(pool: Any, is_from_the_start: bool) -> str:
    options, environment = _options(), _environment()
    if not is_from_the_start:
        raise KeySpaceError("the server's weights may have changed before it got its storage backend")
    doubts = without_name(PACKAGES, PLUGINS)
    doubts += [f"{what} is code of its own ({module})" for what, module in _replaced()]
    if doubts:
        raise KeySpaceError("; ".join(doubts))
    _check_sources(options, environment)
    _check_configuration(options)
    weights = [
        loaded_identity(path, process_start_s(), options.get(revision), options.get("download_dir"))
        for path, revision in (
            (options["model_path"], "revision"),
            (options.get("speculative_draft_model_path"), "speculative_draft_model_revision"),
        )
        if path
    ]
    counted = {name: value for name, value in options.items() if not _is_harmless(name)}
    counted.pop("speculative_draft_model_path", None)
    said = ["sglang", _software(), environment, weights, _plain(counted), describe(pool)]
    return json.dumps(said, sort_keys=True)


def _replaced() -> Iterator[tuple[str, str]]:
    """Yield functions of other code that stand in the place of SGLang's, and the modules of that code."""
    known = {*KNOWN_CODE, *plugin_packages(PLUGINS)}
    return replaced_functions(loaded_modules("sglang"), lambda module: module.partition(".")[0] in known)


def _software() -> list[Any]:
    """Return the versions of the code that computes, and what it runs on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return [metadata.version("sglang"), torch.__version__, versions(), plugins(PLUGINS), device]


def _environment() -> dict[str, str]:
    """Return the environment variables that may change what SGLang computes, as far as they are set."""
    declared = _declared()
    found = {
        name: value
        for name, value in os.environ.items()
        if (name in declared or name.startswith(PREFIXES))
        and not any(fnmatch(name, pattern) for pattern in HARMLESS_ENVIRONMENT)
    }
    return found | library_environment()


def _declared() -> frozenset[str]:
    """Return the names of the environment variables that SGLang declares."""
    try:
        from sglang.srt.environ import EnvField, Envs
    except ImportError as error:
        raise KeySpaceError(f"SGLang does not say which environment variables it has: {error}") from None
    return frozenset(field.name for field in vars(Envs).values() if isinstance(field, EnvField))


def _check_sources(options: dict[str, Any], environment: dict[str, str]) -> None:
    """Raise KeySpaceError for weights that are not those of the files in the model's folder."""
    for name in OUTSIDE_ENVIRONMENT:
        if environment.get(name):
            raise KeySpaceError(f"KV depends on what {name} says, which has no name")
    if environment.get("SGLANG_USE_MODELSCOPE") and not Path(options["model_path"]).exists():
        raise KeySpaceError(
            f"{options['model_path']} is not a folder: download it from ModelScope, and give its folder"
        )
    form = options.get("load_format", "auto")
    if form == "dummy":
        raise KeySpaceError("the weights are random (load_format dummy)")
    if form not in FROM_FILES:
        raise KeySpaceError(f"weights of load_format {form} are not read from the model's files")
    if options.get("disaggregation_mode") == "decode":
        raise KeySpaceError(
            "another server, whose weights are not known, computes prompts for a decode server"
        )
    if options.get("enable_lora"):
        raise KeySpaceError("SGLang names adapters otherwise than by their content (enable_lora)")
    for name in OUTSIDE:
        if options.get(name):
            raise KeySpaceError(f"KV depends on what {name} says, which has no name")
    if "_path" in str(options.get("model_loader_extra_config")):  # of an adapter (qlora), or other weights
        raise KeySpaceError("KV depends on what model_loader_extra_config names, which has no name")
    if options.get("weight_cache_mode", "off") != "off":
        raise KeySpaceError("the weights come from another process (weight_cache_mode)")


def _check_configuration(options: dict[str, Any]) -> None:
    """Raise KeySpaceError where a model's own configuration says that its pages may have no certain name.

    That is so with rotary embeddings that SGLang chooses by the longest prompt of a batch, with code that is
    not in the model's folder, and with images and sounds, which callers may name as they like.
    """
    folder = located(options["model_path"])
    try:
        given = [json.loads(options.get("json_model_override_args") or "{}")]
        for name in CONFIGURATIONS:
            with suppress(FileNotFoundError):  # SGLang needs none for a single file of weights
                given.append(json.loads((folder / name).read_bytes()))
    except (OSError, ValueError, RecursionError, TypeError) as error:
        raise KeySpaceError(f"the model's configuration can't be read: {error}") from None
    if set(rope_types(given)) & set(ROPES_OF_LENGTH):
        raise KeySpaceError(
            "with a rotary embedding that is chosen by the length of prompts, KV depends on what else is in "
            "the batch"
        )
    if options.get("trust_remote_code") and any("--" in code for code in remote_code(given)):
        raise KeySpaceError("the model runs code from another place than its own folder")
    is_text = options.get("enable_multimodal") is False or options.get("language_model_only")
    if not is_text and any(word in name for name, _ in entries(given) for word in MEDIA):
        raise KeySpaceError(
            "callers may give SGLang names of their own for images and sounds (enable_multimodal)"
        )


def describe(pool: Any) -> dict[str, str]:
    """Return how a pool of host memory orders a page's bytes. Raises KeySpaceError if it does not say."""
    found = {name: str(getattr(pool, name)) for name in POOL_PROPERTIES if hasattr(pool, name)}
    missing = [name for name in POOL_PROPERTIES[:3] if name not in found]
    if missing:
        raise KeySpaceError(f"SGLang's {type(pool).__name__} does not say its {missing[0]}")
    return {"class": type(pool).__name__, **found}


def _is_harmless(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in HARMLESS_OPTIONS)


def _options() -> dict[str, Any]:
    """Return the server's options by name, with what SGLang chose for those that the user did not give."""
    try:
        from sglang.srt.runtime_context import get_server_args

        given = get_server_args()
        names = getattr(given, "__struct_fields__", None) or list(vars(given))
        options = {name: getattr(given, name) for name in names}
        options |= given.resolved_dict()
    except Exception as error:  # of any kind: which one differs between versions of SGLang
        raise KeySpaceError(f"SGLang does not say the options of its server: {error}") from None
    if not isinstance(options.get("model_path"), str):
        raise KeySpaceError("SGLang does not say where its model is (model_path)")
    return options


def _plain(value: Any) -> Any:
    """Return options as JSON. Raises KeySpaceError for what other processes would not name alike."""
    if is_path(value):
        raise KeySpaceError(f"an option of SGLang names {value}, whose content may change")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(one), sort_keys=True) for one in value)
    if hasattr(value, "value"):  # an Enum
        return _plain(value.value)
    fields = getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", None)
    if fields:
        return {name: _plain(getattr(value, name)) for name in fields}
    raise KeySpaceError(f"an option of SGLang is a {type(value).__name__}, which has no name")
