"""Code of the user's own in the place of vLLM's, whose registries are tables that anybody may write into.

A program may register a model, a layer, a kernel or a loader, also under the name of one of vLLM's. Packages
of plugins are named by their versions (`engines.software`); what else is registered has no name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from engines.replaced import loaded_modules, replaced_functions
from engines.software import plugin_packages

if TYPE_CHECKING:
    from vllm.config import VllmConfig

PLUGINS: Final = ("vllm.general_plugins", "vllm.platform_plugins", "vllm.ir_plugins")
KNOWN_CODE: Final = (
    "builtins", "collections", "compressed_tensors", "torch", "transformers", "transformers_modules", "types",
    "vllm",
)  # fmt: skip
"""Packages whose code their version names, or, of `transformers_modules`, the files of the model's folder."""
QUANTIZATIONS: Final = ("vllm.model_executor.layers.quantization", "_CUSTOMIZED_METHOD_TO_QUANT_CONFIG")
LOADERS: Final = ("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER")
LAYERS: Final = ("vllm.model_executor.custom_op", "op_registry_oot")
BACKENDS: Final = ("vllm.v1.attention.backends.registry", "_ATTN_OVERRIDES")
BACKEND_NAMES: Final = ("vllm.v1.attention.backends.registry", "AttentionBackendEnum")
PREFILLS: Final = ("vllm.v1.attention.backends.mla.prefill.registry", "_MLA_PREFILL_OVERRIDES")
PREFILL_NAMES: Final = ("vllm.v1.attention.backends.mla.prefill.registry", "MLAPrefillBackendEnum")
MODELS: Final = ("vllm.model_executor.models", "ModelRegistry")
OPERATIONS: Final = ("vllm.ir.op", "IrOp")
TRANSFORMERS: Final = ("transformers", "AutoModel")
"""Registries of vLLM, and that of transformers: module and name."""


def is_known(module: str) -> bool:
    """Return whether the code of a module is that of a package whose version is in the key."""
    return module.partition(".")[0] in _known()


def own_code(config: VllmConfig) -> list[str]:
    """Return what this process's engine runs besides code that is known, each as a reason not to share."""
    try:
        found = [f"{what} is code of its own ({module})" for what, module in _registered(config)]
    except (AttributeError, KeyError, TypeError) as error:
        return [f"vLLM's registries are not those that are known here: {error!r}"]
    return list(dict.fromkeys(found))


def _registered(config: VllmConfig) -> Iterator[tuple[str, str]]:
    for what, module in (*_models(config.model_config), *_replacements(config), *_operations(), *_patches()):
        if not is_known(module):
            yield what, module


def _models(model: Any) -> Iterator[tuple[str, str]]:
    """Yield what computes each of the model's architectures, and the module of its code."""
    registered = getattr(_registry(MODELS), "models", {})
    for architecture in model.architectures:
        entry = registered.get(architecture)
        if entry is not None:
            yield f"model {architecture}", _module_of(entry)
    for architecture, target in (getattr(model, "model_class_overrides", None) or {}).items():
        yield f"model {architecture}", str(target)
    of_programs = getattr(getattr(_registry(TRANSFORMERS), "_model_mapping", None), "_extra_content", {})
    for configuration in {type(model.hf_config), type(model.hf_text_config)} & of_programs.keys():
        yield f"transformers' model of {configuration.__name__}", of_programs[configuration].__module__


def _module_of(entry: Any) -> str:
    """Return the module of a registered model, which is imported or not."""
    name = getattr(entry, "module_name", None)
    return str(entry.model_cls.__module__ if name is None else name)


def _replacements(config: VllmConfig) -> Iterator[tuple[str, str]]:
    """Yield loaders, quantizations, layers and attention that were registered in this process."""
    loader = (_registry(LOADERS) or {}).get(config.load_config.load_format)
    yield "the loader of weights", getattr(loader, "__module__", "vllm")
    for what, registry in (("quantization", QUANTIZATIONS), ("layer", LAYERS)):
        for name, kind in (_registry(registry) or {}).items():
            yield f"{what} {name}", kind.__module__
    for registry in (BACKENDS, PREFILLS):
        for backend, path in (_registry(registry) or {}).items():
            yield f"attention {backend.name}", path
    for registry in (BACKEND_NAMES, PREFILL_NAMES):
        for backend in _registry(registry) or ():
            yield f"attention {backend.name}", backend.value or "vllm"


def _operations() -> Iterator[tuple[str, str]]:
    """Yield operations of vLLM's intermediate representation, with the functions that compute them."""
    for name, operation in getattr(_registry(OPERATIONS), "registry", {}).items():
        for one in operation.impls.values():
            yield f"operation {name}", one.impl_fn.__module__


def _patches() -> Iterator[tuple[str, str]]:
    """Yield functions of other code that stand in the place of vLLM's, or of transformers' models."""
    yield from replaced_functions(loaded_modules("vllm", "transformers.models"), is_known)


def _registry(place: tuple[str, str]) -> Any:
    """Return one of vLLM's registries, or None where this version has none of that name."""
    module, name = place
    try:
        return getattr(import_module(module), name, None)
    except ImportError:
        return None


@cache
def _known() -> frozenset[str]:
    return frozenset((*KNOWN_CODE, *plugin_packages(PLUGINS)))
