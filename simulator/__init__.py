"""Discrete-event simulator of the system at real scale, with the live system's policies, costs and keys.

result = simulator.simulate(scenario.load_scenario("scenario.toml")[0])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.result import SimResult
    from simulator.simulation import simulate

__all__ = ["SimResult", "simulate"]
_MODULES = {"SimResult": "simulator.result", "simulate": "simulator.simulation"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` from its module at its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import_module("simulator.compiled").use()  # before any module of the build is imported
        return getattr(import_module(_MODULES[name]), name)
