"""Weights that an engine computes with: the content of the files that it loaded, by a hash."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vllm import envs

from engines.identity import in_background, loaded_identity, process_start_s
from engines.model_configuration import other_models, remote_code
from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from vllm.config import VllmConfig

FROM_FILES: Final = (
    "auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "pt", "npcache", "mistral",
    "sharded_state", "runai_streamer", "runai_streamer_sharded",
)  # fmt: skip
"""Load formats whose weights are those of the files in the model's folder."""


def begin_naming(config: VllmConfig) -> Future[str]:
    """Return a future of the name of the weights that this process, or one that it started, has loaded.

    It raises KeySpaceError, with the reason, if it is not certain which weights these are.
    """
    return in_background(lambda: name_weights(config, process_start_s()))


def name_weights(config: VllmConfig, loaded_after_s: float) -> str:
    """Return the name of the weights, which were loaded at some time after `loaded_after_s`.

    Files that changed since may not be those that were loaded. Raises KeySpaceError then, and for weights
    that come from elsewhere.
    """
    names = []
    for model, load in _models(config):
        _check_source(model, load)
        names.append(loaded_identity(model.model, loaded_after_s, model.revision, load.download_dir))
    if len(set(names)) == 1:
        return names[0]
    return f"contents:{sha256(' '.join(names).encode()).hexdigest()[:32]}"


def _models(config: VllmConfig) -> list[tuple[Any, Any]]:
    """Return the model and the one that drafts for it, each with how it is loaded."""
    models = [(config.model_config, config.load_config)]
    speculative = config.speculative_config
    draft = getattr(speculative, "draft_model_config", None)
    if draft is not None and draft.model != config.model_config.model:
        models.append((draft, getattr(speculative, "draft_load_config", None) or config.load_config))
    return models


def _check_source(model: Any, load: Any) -> None:
    """Raise KeySpaceError for weights or code that do not come from the files of the model's folder."""
    if load.load_format == "dummy":
        raise KeySpaceError("the weights are random (load_format='dummy')")
    if load.load_format not in FROM_FILES:
        raise KeySpaceError(
            f"weights of load_format={load.load_format!r} are not read from the model's files"
        )
    if model.model_weights and model.model_weights != model.model:
        raise KeySpaceError(
            f"the weights come from {model.model_weights}, which is no folder on this machine"
        )
    if envs.VLLM_USE_MODELSCOPE and not Path(model.model).exists():
        raise KeySpaceError(
            f"{model.model} is not a folder: download it from ModelScope, and give its folder"
        )
    configuration = model.hf_config.to_dict()
    others = sorted(other_models(configuration))
    if others:
        raise KeySpaceError(f"parts of {model.model} have the weights of {', '.join(others)}")
    code = list(remote_code(configuration))
    is_elsewhere = model.code_revision is not None or bool(getattr(model, "hf_config_path", None))
    if model.trust_remote_code and ("--" in str(code) or (code and is_elsewhere)):
        raise KeySpaceError(f"{model.model} runs code from another place than its own folder: {code}")
    overrides = model.hf_overrides
    if isinstance(overrides, dict) and overrides.get("quantization_config_file") is not None:
        raise KeySpaceError("a file beside the model says how it is quantized (quantization_config_file)")
