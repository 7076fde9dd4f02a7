"""vLLM's resolved configuration, field by field: what changes the KV of given tokens changes the digest."""

from __future__ import annotations

import copy
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="make test-engines")
pytest.importorskip("vllm", reason="make test-engines")

import torch
from transformers import AutoModel, LlamaConfig, MistralConfig, Phi3Config
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.attention.backends.mla.prefill.registry import MLAPrefillBackendEnum
from vllm.v1.attention.backends.registry import AttentionBackendEnum
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

from engines.vllm import own_code, resolved
from engines.vllm.resolved import HARMLESS, resolve

SHAPE: dict[str, Any] = {"block_size": 32, "num_kv_heads": 2, "head_size": 64}
PLAIN: dict[str, Any] = {
    "skip_tokenizer_init": True, "dtype": "float32", "enforce_eager": True, "max_model_len": 512,
    "block_size": 32,
}  # fmt: skip


def cache(**changes: Any) -> KVCacheConfig:
    spec = FullAttentionSpec(**{"dtype": torch.float32, **SHAPE, **changes})
    return KVCacheConfig(8, [], [KVCacheGroupSpec(["layer.0", "layer.1"], spec)])


def model_folder(path: Path, config: Any) -> Path:
    config.architectures = [f"{type(config).__name__.removesuffix('Config')}ForCausalLM"]
    config.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096,
    )  # fmt: skip
    return model_folder(tmp_path_factory.mktemp("models") / "llama", config)


@pytest.fixture(scope="module")
def phi3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose rotary embedding vLLM chooses by the longest prompt that it is to take."""
    rope = {
        "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 16, "long_factor": [2.0] * 16,
        "original_max_position_embeddings": 512,
    }  # fmt: skip
    config = Phi3Config(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096, original_max_position_embeddings=512,
        rope_parameters=rope, pad_token_id=0,
    )  # fmt: skip
    return model_folder(tmp_path_factory.mktemp("models") / "phi3", config)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}.items():
        monkeypatch.setenv(name, value)


def configured(model: Path, **options: Any) -> VllmConfig:
    return EngineArgs(model=str(model), **{**PLAIN, **options}).create_engine_config()


@pytest.fixture(scope="module")
def plain(llama: Path) -> VllmConfig:
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    return configured(llama)


def digest(config: VllmConfig, kv_cache: KVCacheConfig | None = None) -> str:
    return resolve(config, kv_cache or cache()).digest


def test_products_of_shortened_numbers_count(plain: VllmConfig) -> None:
    """With TF32, torch shortens float32 numbers before it multiplies them, in the whole process."""
    exact = digest(plain)
    try:
        torch.set_float32_matmul_precision("high")
        assert digest(plain) != exact
    finally:
        torch.set_float32_matmul_precision("highest")
    assert digest(plain) == exact


@pytest.mark.parametrize(
    "options",
    [
        {"gpu_memory_utilization": 0.3},
        {"max_num_seqs": 3},
        {"max_num_batched_tokens": 4096},
        {"num_gpu_blocks_override": 77},
        {"seed": 7},
        {"served_model_name": "another"},
        {"enable_prefix_caching": False},
        {"disable_log_stats": True},
        {"max_model_len": 1024},  # of a model whose rotary embedding does not depend on it
        {"async_scheduling": False},
        {"kv_cache_memory_bytes": 1 << 28},
        {"max_logprobs": 5},
        {"distributed_executor_backend": "uni"},
        {"data_parallel_rpc_port": 29999},
        {"speculative_config": {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3}},
        {"otlp_traces_endpoint": None},
        {"scheduling_policy": "priority"},
        {"long_prefill_token_threshold": 64},
        {"load_format": "auto"},
        {"download_dir": "/tmp"},
    ],
)
def test_plain_engines_with_harmless_differences_share(
    llama: Path, plain: VllmConfig, options: dict[str, Any]
) -> None:
    here, there = resolve(plain, cache()), resolve(configured(llama, **options), cache())
    assert set(here.entries) ^ set(there.entries) == set()
    assert here.digest == there.digest


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "bfloat16"},
        {"kv_cache_dtype": "fp8"},
        {"hf_overrides": {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0,
                                              "original_max_position_embeddings": 2048}}},
        {"hf_overrides": {"rms_norm_eps": 1e-3}},
        {"attention_backend": "CPU_ATTN"},
        {"model_impl": "transformers"},
        {"additional_config": {"anything": 1}},
        {"enable_lora": True, "max_lora_rank": 8},
        {"trust_remote_code": True},
        {"load_format": "safetensors"},
        {"block_size": 64},
    ],
)  # fmt: skip
def test_engines_with_other_options_do_not_share(
    llama: Path, plain: VllmConfig, options: dict[str, Any]
) -> None:
    assert digest(configured(llama, **options)) != digest(plain)


def test_the_rotary_embedding_that_a_longest_prompt_chooses_is_told_apart(phi3: Path) -> None:
    short, long = configured(phi3, max_model_len=512), configured(phi3, max_model_len=2048)
    assert digest(short) != digest(long)
    assert digest(short) == digest(configured(phi3, max_model_len=512, max_num_seqs=3))


@pytest.mark.parametrize(
    "changes", [{"sliding_window": 64}, {"num_kv_heads": 1}, {"head_size": 32}, {"dtype": torch.bfloat16}]
)
def test_the_kv_cache_itself_counts(plain: VllmConfig, changes: dict[str, Any]) -> None:
    assert digest(plain, cache(**changes)) != digest(plain)


def test_layers_in_another_order_do_not_share(plain: VllmConfig) -> None:
    spec = cache().kv_cache_groups[0].kv_cache_spec
    turned = KVCacheConfig(8, [], [KVCacheGroupSpec(["layer.1", "layer.0"], spec)])
    assert digest(plain, turned) != digest(plain)


def fields(config: VllmConfig) -> Iterator[tuple[Any, str]]:
    """Every field of a configuration and of those that it consists of."""
    for name, one in vars(config).items():
        yield config, name
        if type(one).__module__.startswith("vllm.config") and is_dataclass(one):
            yield from ((one, within) for within in vars(one))


def test_each_field_counts_unless_it_is_known_to_be_harmless(plain: VllmConfig) -> None:
    config = copy.deepcopy(plain)
    right, counted, harmless = digest(config), 0, 0
    for owner, name in list(fields(config)):
        kind, former = type(owner).__name__, getattr(owner, name)
        is_harmless = any(fnmatch(name, pattern) for pattern in HARMLESS.get(kind, ())) or (
            kind == "ModelConfig" and name in resolved.LENGTHS
        )
        if name in ("hf_config", "model_config", "speculative_config"):  # which say what else is harmless
            continue
        object.__setattr__(owner, name, "something else")
        try:
            changed = digest(config) != right
        finally:
            object.__setattr__(owner, name, former)
        within_harmless = any(
            kind == type(getattr(config, one, None)).__name__ for one in HARMLESS["VllmConfig"]
        )
        assert changed == (not is_harmless and not within_harmless), (kind, name)
        counted, harmless = counted + changed, harmless + (not changed)
    assert digest(config) == right
    assert counted > 100
    assert harmless > 100


UNDER_ANOTHER_NAME = {
    "lora_target_modules", "enable_lora",  # of LoRAConfig
    "spec_method", "spec_model", "spec_tokens",  # of SpeculativeConfig
    "enable_mamba_cache_stochastic_rounding", "mamba_backend", "mamba_cache_philox_rounds",
    "mamba_ssu_algorithm",  # of MambaConfig
    "gdn_prefill_backend", "kda_decode_backend", "kda_prefill_backend",  # entries of additional_config
}  # fmt: skip
"""Arguments that become fields of other names, which count."""
WITHOUT_EFFECT_ON_KV = {
    "aggregate_engine_logging", "data_parallel_address", "data_parallel_multi_port_external_lb",
    "data_parallel_start_rank", "device_ids", "disable_log_stats", "fail_on_environ_validation",
    "log_config_file", "scheduling_policy", "tokens_only",
}  # fmt: skip
"""Arguments that say who serves which requests, where, and what is logged of it."""


def test_every_argument_of_vllm_becomes_a_field_or_is_known_not_to_matter() -> None:
    """A field counts unless it is known not to; what a later version adds has to be looked at here."""
    modules = [module for name, module in sys.modules.items() if name.startswith("vllm.config.")]
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    known = {name for kind in kinds if is_dataclass(kind) for name in getattr(kind, "__annotations__", {})}
    arguments = {field.name for field in dataclasses.fields(EngineArgs)}
    assert arguments - known == UNDER_ANOTHER_NAME | WITHOUT_EFFECT_ON_KV


def test_a_field_that_a_later_vllm_adds_counts(plain: VllmConfig) -> None:
    config = copy.deepcopy(plain)
    object.__setattr__(config.cache_config, "a_new_switch", 1)
    assert digest(config) != digest(plain)


@pytest.mark.parametrize(
    "name",
    [
        "VLLM_BATCH_INVARIANT", "VLLM_FLOAT32_MATMUL_PRECISION", "VLLM_KV_CACHE_LAYOUT",
        "VLLM_ASCEND_ENABLE_NZ", "AITER_BF16_FP8_MOE_BOUND",
    ],
)  # fmt: skip
def test_switches_in_the_environment_count(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also those of a plugin or a package of kernels, of which vLLM knows nothing."""
    right = digest(plain)
    value = {"VLLM_FLOAT32_MATMUL_PRECISION": "high", "VLLM_KV_CACHE_LAYOUT": "HND"}.get(name, "1")
    monkeypatch.setenv(name, value)
    assert digest(plain) != right


@pytest.mark.parametrize(
    "name",
    [
        "VLLM_PORT", "VLLM_LOGGING_LEVEL", "VLLM_CPU_KVCACHE_SPACE", "VLLM_HOST_IP", "VLLM_DIST_IDENT",
        "VLLM_PORT_8000_TCP_ADDR",
    ],
)  # fmt: skip
def test_what_the_environment_says_of_the_machine_does_not(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    right = digest(plain)
    monkeypatch.setenv(name, {"VLLM_LOGGING_LEVEL": "DEBUG"}.get(name, "2"))
    assert digest(plain) == right


def test_experts_that_are_chosen_by_chance_are_said(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_MOE_ROUTING_SIMULATION_STRATEGY", "uniform_random")
    (said,) = resolve(plain, cache()).nameless
    assert "sends tokens to experts by chance" in said


def test_what_rays_workers_run_with_counts(plain: VllmConfig) -> None:
    config = copy.deepcopy(plain)
    environment = {"env_vars": {"NVIDIA_TF32_OVERRIDE": "0"}}
    object.__setattr__(config.parallel_config, "ray_runtime_env", environment)
    assert digest(config) != digest(plain)


def own_override(config: Any) -> Any:
    return config


class Own:
    """A class of the user's own, which may compute anything."""


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("hf_overrides", lambda config: config, "is code of its own"),
        ("hf_overrides", own_override, "is code of its own"),
        ("hf_overrides", {"a": object()}, "is a builtins.object"),
        ("worker_extension_cls", "trainer.WeightSync", "is code of its own .trainer.WeightSync"),
        ("worker_cls", "somebody.worker.Worker", "is code of its own"),
        ("scheduler_cls", "somebody.Scheduler", "is code of its own .somebody.Scheduler"),
        ("scheduler_cls", Own, "is code of its own .*Own"),
        ("distributed_executor_backend", "somebody.Executor", "is code of its own .somebody.Executor"),
        ("distributed_executor_backend", Own, "is code of its own .*Own"),
        ("backend", "somebody.compile", "is code of its own .somebody.compile"),
        ("backend", "my_dynamo_backend", "is code of its own .my_dynamo_backend"),
        ("hf_text_config", Own(), "is code of its own .*Own"),
        ("hf_overrides", {"scales": __file__}, "names .*test_resolved.py, whose content may change"),
        ("calculate_kv_scales", True, "scales the KV by the first prompt of each engine"),
    ],
)
def test_what_no_other_process_would_name_alike_is_said(
    plain: VllmConfig, field: str, value: Any, why: str
) -> None:
    config = copy.deepcopy(plain)
    owners = {"worker_extension_cls": "parallel_config", "worker_cls": "parallel_config",
              "scheduler_cls": "scheduler_config", "calculate_kv_scales": "cache_config",
              "distributed_executor_backend": "parallel_config", "backend": "compilation_config"}  # fmt: skip
    object.__setattr__(getattr(config, owners.get(field, "model_config")), field, value)
    (said,) = resolve(config, cache()).nameless
    assert re.search(why, said)
    assert field in said
    assert resolve(plain, cache()).nameless == ()


REGISTRIES: tuple[tuple[tuple[str, str], str, Any, str], ...] = (
    (own_code.MODELS, "LlamaForCausalLM", SimpleNamespace(model_cls=Own), "model LlamaForCausalLM"),
    (own_code.MODELS, "LlamaForCausalLM", SimpleNamespace(module_name="somebody.llama"), "model Llama"),
    (own_code.LOADERS, "auto", Own, "the loader of weights"),
    (own_code.QUANTIZATIONS, "half-bit", Own, "quantization half-bit"),
    (own_code.LAYERS, "RMSNorm", Own, "layer RMSNorm"),
    (own_code.BACKENDS, AttentionBackendEnum.CPU_ATTN, "somebody.Attention", "attention CPU_ATTN"),
    (own_code.PREFILLS, MLAPrefillBackendEnum.FLASH_ATTN, "somebody.Prefill", "attention FLASH_ATTN"),
)


@pytest.mark.parametrize(("place", "name", "entry", "what"), REGISTRIES)
def test_code_that_a_program_registers_in_the_place_of_vllms_is_said(
    plain: VllmConfig,
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[str, str],
    name: Any,
    entry: Any,
    what: str,
) -> None:
    """Its name is that of vLLM's own, and says nothing of what it computes."""
    registry = own_code._registry(place)
    assert registry is not None
    table = dict(getattr(registry, "models", registry))
    table[name] = entry
    if place == own_code.MODELS:
        monkeypatch.setattr(registry, "models", table)
    else:
        monkeypatch.setattr(*place_of(place), table)
    (said,) = resolve(plain, cache()).nameless
    assert re.match(f"{what}.* is code of its own", said)


def place_of(place: tuple[str, str]) -> tuple[Any, str]:
    """The module that has a registry, and the registry's name."""
    module, name = place
    return sys.modules[module], name


def test_models_loaders_and_operations_of_plugins_are_known_by_their_package(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {**own_code._registry(own_code.LOADERS), "auto": Own}
    monkeypatch.setattr(*place_of(own_code.LOADERS), table)
    monkeypatch.setattr(own_code, "_known", lambda: {*own_code.KNOWN_CODE, Own.__module__.partition(".")[0]})
    assert resolve(plain, cache()).nameless == ()


@pytest.mark.parametrize("place", ["LlamaAttention.forward", "LlamaMLP", "get_pp_group"])
def test_what_a_program_puts_in_the_place_of_vllms_functions_is_said(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    where = f"vllm.model_executor.models.llama.{place}"
    monkeypatch.setattr(where, Own if place == "LlamaMLP" else own_override)
    assert resolve(plain, cache()).nameless == (f"{where} is code of its own ({__name__})",)


def test_an_operation_of_ones_own_is_said(plain: VllmConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = own_code._registry(own_code.OPERATIONS).registry
    name, operation = next(iter(operations.items()))
    mine = SimpleNamespace(impl_fn=own_override)
    monkeypatch.setattr(operation, "impls", {**operation.impls, "mine": mine})
    assert resolve(plain, cache()).nameless == (
        f"operation {name} is code of its own ({own_override.__module__})",
    )


def test_a_model_that_a_program_registers_in_transformers_is_said(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM runs it with `model_impl` `transformers`."""
    registry = AutoModel._model_mapping
    monkeypatch.setattr(registry, "_extra_content", {**registry._extra_content, MistralConfig: Own})
    assert resolve(plain, cache()).nameless == ()
    monkeypatch.setattr(registry, "_extra_content", {**registry._extra_content, LlamaConfig: Own})
    (said,) = resolve(plain, cache()).nameless
    assert "transformers' model of LlamaConfig is code of its own" in said


def test_registries_of_another_form_are_said(plain: VllmConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registries of a later vLLM may have another form; that must not end an engine."""
    monkeypatch.setattr(*place_of(own_code.QUANTIZATIONS), {"half-bit": 7})
    (said,) = resolve(plain, cache()).nameless
    assert "registries are not those that are known here" in said


def test_an_overridden_model_class_is_said(plain: VllmConfig) -> None:
    config = copy.deepcopy(plain)
    config.model_config.model_class_overrides = {"LlamaForCausalLM": "somebody.models:Llama"}
    assert (
        "model LlamaForCausalLM is code of its own (somebody.models:Llama)"
        in resolve(config, cache()).nameless
    )


def test_the_number_of_ranks_counts_that_exchange_what_experts_compute(plain: VllmConfig) -> None:
    digests = set()
    for is_exchanged in (False, True):
        for ranks in (1, 2):
            config = copy.deepcopy(plain)
            object.__setattr__(config.parallel_config, "enable_expert_parallel", is_exchanged)
            object.__setattr__(config.parallel_config, "data_parallel_size", ranks)
            digests.add(digest(config))
    assert len(digests) == 3


def test_software_whose_version_does_not_name_its_code_is_said(
    plain: VllmConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolved, "_nameless_software", lambda: ("vllm 0.32 was installed from a folder",))
    assert resolve(plain, cache()).nameless == ("vllm 0.32 was installed from a folder",)


IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from tests.engines.live.test_resolved import configured, digest
print("digest", digest(configured(Path(sys.argv[1]))))
"""


def test_another_process_elsewhere_gives_the_same_digest(
    llama: Path, plain: VllmConfig, tmp_path: Path
) -> None:
    elsewhere = shutil.copytree(llama, tmp_path / "elsewhere" / "renamed")
    root = Path(__file__).resolve().parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(elsewhere)],
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "77", "HOME": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert f"digest {digest(plain)}" in ran.stdout, ran.stderr[-2000:]
