"""Which weights an engine computes with: the content of the files that it loaded, by a hash."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vllm import envs

from engines.digests import FileState
from engines.identity import ModelFiles, process_start_s
from hostlib.errors import KeySpaceError

if TYPE_CHECKING:
    from vllm.config import VllmConfig

FROM_FILES: Final = (
    "auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "pt", "npcache", "mistral", "gguf",
    "bitsandbytes", "sharded_state", "runai_streamer", "runai_streamer_sharded",
)  # fmt: skip
"""Load formats whose weights are those of the files in the model's folder."""


def begin_naming(config: VllmConfig) -> Future[str]:
    """Return a future of the name of the weights that this process, or one that it started, has loaded.

    It raises KeySpaceError, with the reason, if it is not certain which weights these are.
    """
    named: Future[str] = Future()
    threading.Thread(target=_name_into, args=(named, config), name="weir weights", daemon=True).start()
    return named


def _name_into(named: Future[str], config: VllmConfig) -> None:
    try:
        named.set_result(name_weights(config, process_start_s()))
    except OSError as error:
        named.set_exception(KeySpaceError(f"the model's files can't be read: {error}"))
    except BaseException as error:
        named.set_exception(error)


def name_weights(config: VllmConfig, loaded_after_s: float) -> str:
    """Return the name of the weights, which were loaded at some time after `loaded_after_s`.

    Files that changed since may not be those that were loaded. Raises KeySpaceError then, and for weights
    that come from elsewhere.
    """
    names = []
    for model, load in _models(config):
        folder, hub_reference = _folder(model, load)
        files = ModelFiles.of(folder)
        name = files.identity()
        changed = files.changed_after(loaded_after_s)
        if hub_reference is not None and FileState.of(hub_reference).changed_s >= loaded_after_s:
            changed = str(hub_reference)
        if changed is not None:
            raise KeySpaceError(
                f"{changed} was written after the engine started, so it may not be what the engine loaded; "
                "start the engine again"
            )
        names.append(name)
    if len(set(names)) == 1:
        return names[0]
    return f"contents:{sha256(' '.join(names).encode()).hexdigest()[:32]}"


def _models(config: VllmConfig) -> list[tuple[Any, Any]]:
    """The model and the one that drafts for it, each with how it is loaded."""
    models = [(config.model_config, config.load_config)]
    speculative = config.speculative_config
    draft = getattr(speculative, "draft_model_config", None)
    if draft is not None and draft.model != config.model_config.model:
        models.append((draft, getattr(speculative, "draft_load_config", None) or config.load_config))
    return models


def _folder(model: Any, load: Any) -> tuple[Path, Path | None]:
    """The folder or file of a model; if it came from a hub, also the file that says which commit that is."""
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
    _check_code(model)
    if Path(model.model).exists():
        return Path(model.model), None
    if envs.VLLM_USE_MODELSCOPE:
        raise KeySpaceError(
            f"{model.model} is not a folder: download it from ModelScope, and give its folder"
        )
    return _snapshot(model.model, model.revision, load.download_dir)


def _check_code(model: Any) -> None:
    """Raise KeySpaceError for a model that runs code from elsewhere than its own folder."""
    code = getattr(model.hf_config, "auto_map", None) or {}
    if model.trust_remote_code and ("--" in str(code) or (code and model.code_revision is not None)):
        raise KeySpaceError(f"{model.model} runs code from another place than its own folder: {code}")


def _snapshot(name: str, revision: str | None, download_dir: str | None) -> tuple[Path, Path | None]:
    """Where a model of the Hugging Face hub lies on this machine."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(name, revision=revision, cache_dir=download_dir, local_files_only=True)
        )
    except (LocalEntryNotFoundError, ValueError) as error:
        raise KeySpaceError(f"{name} is neither a folder nor in the hub's cache here: {error}") from None
    reference = folder.parent.parent / "refs" / (revision or "main")
    return folder, reference if reference.is_file() else None
