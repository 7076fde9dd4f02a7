"""The embedded switch: compiles P4_16 programs for v1model to C, and runs them.

with v1model.Switch(v1model.compile_p4("program.p4")) as switch:
    outputs = switch.inject(1, packet)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from v1model.compile import compile_p4
    from v1model.errors import CompileError
    from v1model.switch import Switch

__all__ = ["CompileError", "Switch", "compile_p4"]
_MODULES = {"CompileError": "v1model.errors", "Switch": "v1model.switch", "compile_p4": "v1model.compile"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` from its module when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
