"""Notices the calls that change the weights of a running SGLang server, in its scheduler's process."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
    "begin_weight_update", "load_weights_from_distributed", "update_weights_from_disk",
    "update_weights_from_distributed", "update_weights_from_ipc", "update_weights_from_tensor",
)  # fmt: skip
SERVER: Final = "sglang.srt.managers.scheduler"
"""A module that every process with a server's weights has loaded."""


class Listener(Protocol):
    """Listener for changes of weights."""

    def weights_changed(self) -> None:
        """Handle a change of weights that is about to happen."""


_listeners: WeakSet[Any] = WeakSet()


def listen(listener: Listener) -> None:
    """Tell `listener`, as long as it lives, before this process's server changes its weights.

    Raises KeySpaceError in a server that has no such method, as other versions of SGLang may.
    """
    watched = 0
    for module, name in UPDATERS.items():
        updater = getattr(sys.modules.get(module), name, None)
        for method in METHODS:
            plain = getattr(updater, method, None)
            watched += plain is not None
            if plain is not None and not hasattr(plain, "tells_weir"):
                setattr(updater, method, _telling(plain))
    if SERVER in sys.modules and not watched:
        raise KeySpaceError("it can't be noticed in this version of SGLang when weights change")
    _listeners.add(listener)


def _telling(plain: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def telling(*arguments: Any, **named: Any) -> Any:
        for listener in list(_listeners):
            listener.weights_changed()
        return plain(*arguments, **named)

    telling.tells_weir = True  # type: ignore[attr-defined]
    return telling
