"""Notices the calls by which the weights of a running engine may change.

vLLM tells a connector nothing of them. They pass the engine's executor, which calls methods of its workers by
name or as functions (`collective_rpc`, with `reload_weights`, `update_weights`, `apply_model` and whatever a
worker extension adds), or are adapters that the engine's core loads in place. Training in the process of the
engine or of a worker gives new weights to the model itself, and may tell the engine's core their version.
When vLLM forgets images that it has encoded, it may have encoded them with former weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Protocol
from weakref import WeakSet

HARMLESS = frozenset({
    "add_lora", "annotate_profile", "check_health", "compute_weight_checksums",
    "determine_available_memory", "execute_dummy_batch", "execute_model",
    "get_cache_block_size_bytes", "get_compilation_match_table", "get_encoder_timing_stats",
    "get_kv_cache_spec", "get_kv_connector_handshake_metadata", "get_model_inspection", "get_supported_tasks",
    "init_weight_transfer_engine", "list_loras", "pin_lora", "profile",
    "release_late_interaction_query_cache", "remove_lora", "reset_mm_cache",
    "sample_tokens", "save_sharded_state", "save_tensorized_model",
    "shutdown_weight_transfer_engine", "supports_draft_weight_updates", "synchronize_device",
    "take_draft_token_ids", "update_max_model_len",
})  # fmt: skip
"""Methods of workers that leave the weights as they are. Any other may change them."""


class Listener(Protocol):
    """Listener for changes of weights."""

    def weights_changed(self, reason: str) -> None:
        """Handle a change of weights that is about to happen, or may be."""

    def adapter_changed(self, name: str) -> None:
        """Handle a change of an adapter's weights under the same name."""


_listeners: WeakSet[Any] = WeakSet()


def listen(
    listener: Listener,
    cores: Iterable[type[Any]] = (),
    executors: Iterable[type[Any]] = (),
    models: Iterable[type[Any]] = (),
) -> None:
    """Tell `listener`, as long as it lives, before this process's engine calls such a method.

    `cores` are the classes of engines' cores, `executors` those of which one runs the workers, `models` those
    of models in this process.
    """
    _listeners.add(listener)
    for model in models:
        _watch(model, "load_weights", lambda weights: _on_call("load_weights"))
    for executor in executors:
        _watch(executor, "collective_rpc", _on_call)
    for core in cores:
        _watch(core, "add_lora", _on_adapter)
        _watch(core, "set_weight_version", lambda version: _on_call("set_weight_version"))


def _watch(kind: type[Any], method: str, tell: Callable[[Any], None]) -> None:
    plain = getattr(kind, method, None)  # older versions of vLLM lack some
    if plain is not None and not hasattr(plain, "tells_weir"):
        setattr(kind, method, _telling(plain, tell))


def _telling(plain: Callable[..., Any], tell: Callable[[Any], None]) -> Callable[..., Any]:
    """Return the method, changed so that it tells of its first argument before it runs."""

    @wraps(plain)
    def telling(self: Any, *arguments: Any, **named: Any) -> Any:
        tell(arguments[0] if arguments else next(iter(named.values()), None))
        return plain(self, *arguments, **named)

    telling.tells_weir = True  # type: ignore[attr-defined]
    return telling


def _on_call(method: str | Callable[..., Any]) -> None:
    if method not in HARMLESS:
        name = method if isinstance(method, str) else getattr(method, "__qualname__", "a function")
        for listener in list(_listeners):
            listener.weights_changed(name)


def _on_adapter(adapter: Any) -> None:
    if getattr(adapter, "load_inplace", False):
        for listener in list(_listeners):
            listener.adapter_changed(adapter.lora_name)
