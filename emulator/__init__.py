"""Emulator: runs hosts, switches and controller of a scenario on this machine, and records the results.

results = emulator.play(scenario.load_scenario("scenario.toml")[0])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.library import play
    from emulator.result import RunResult

__all__ = ["RunResult", "play"]
_MODULES = {"RunResult": "emulator.result", "play": "emulator.library"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` from its module when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
