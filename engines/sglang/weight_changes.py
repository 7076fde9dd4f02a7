"""Notices the calls that change the weights of a running SGLang server, or empty its cache, in its
scheduler's process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Protocol
from weakref import WeakSet

from hostlib.protocol.errors import KeySpaceError

UPDATERS: Final = {
    "sglang.srt.model_executor.model_runner_components.weight_updater": "WeightUpdater",
    "sglang.srt.managers.scheduler_components.weight_updater": "SchedulerWeightUpdaterManager",
}
"""Classes whose methods change weights, by their modules."""
METHODS: Final = (
    "begin_weight_update", "end_weight_update", "load_weights_from_distributed", "resume_memory_occupation",
    "update_weights_from_disk", "update_weights_from_distributed", "update_weights_from_ipc",
    "update_weights_from_tensor",
)  # fmt: skip
CACHES: Final = {"sglang.srt.managers.cache_controller": "HiCacheController"}
"""Classes whose method `RESET` ends when nothing is left of SGLang's cache, by their modules."""
RESET: Final = "reset"
SERVER: Final = "sglang.srt.managers.scheduler"
"""A module that every process with a server's weights has loaded."""


class Listener(Protocol):
    """Listener for changes of weights."""

    def weights_changed(self) -> None:
        """Handle a change of weights that is about to happen."""

    def cache_emptied(self) -> None:
        """Take note that the server's cache in its own memory is empty."""


_listeners: WeakSet[Any] = WeakSet()


@dataclass
class _History:
    """Changes since somebody listens: a storage backend may be made later, in another's place."""

    have_changed: bool = False
    was_emptied: bool = False
    """Whether the cache was emptied after the last change."""


_history = _History()


def listen(listener: Listener) -> None:
    """Tell `listener`, as long as it lives, before this process's server changes its weights and after it
    has emptied its cache; and at once, if it has done so since somebody listens.

    Raises KeySpaceError in a server that has no such method, as other versions of SGLang may.
    """
    watched = [_watch(UPDATERS, method, _telling_before) for method in METHODS]
    empties = _watch(CACHES, RESET, _telling_after)
    if SERVER in sys.modules and not (any(watched) and empties):
        raise KeySpaceError("it can't be noticed in this version of SGLang when weights change")
    _listeners.add(listener)
    if _history.have_changed:
        listener.weights_changed()
        if _history.was_emptied:
            listener.cache_emptied()


def _watch(classes: dict[str, str], method: str, telling: Callable[..., Any]) -> bool:
    """Have a method of these classes tell the listeners; whether one of them has it."""
    found = False
    for module, name in classes.items():
        kind = getattr(sys.modules.get(module), name, None)
        plain = getattr(kind, method, None)
        found |= plain is not None
        if plain is not None and not hasattr(plain, "tells_weir"):
            told = telling(plain)
            told.tells_weir = True
            setattr(kind, method, told)
    return found


def _telling_before(plain: Callable[..., Any]) -> Any:
    @wraps(plain)
    def telling(*arguments: Any, **named: Any) -> Any:
        if _touches_weights(*arguments, *named.values()):
            _history.have_changed, _history.was_emptied = True, False
            for listener in list(_listeners):
                listener.weights_changed()
        return plain(*arguments, **named)

    return telling


def _touches_weights(*arguments: Any) -> bool:
    """Return whether the weights are among the parts of memory that the arguments name, if they name any."""
    tags = [tag for one in arguments for tag in getattr(one, "tags", None) or ()]
    return not tags or "weights" in tags


def _telling_after(plain: Callable[..., Any]) -> Any:
    @wraps(plain)
    def telling(*arguments: Any, **named: Any) -> Any:
        result = plain(*arguments, **named)
        _history.was_emptied = True
        for listener in list(_listeners):
            listener.cache_emptied()
        return result

    return telling
