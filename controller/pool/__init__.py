"""The pool of one switch: which blocks have entries and slots, and what becomes of them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.pool.pool import Pool

__all__ = ["Pool"]
_MODULES = {"Pool": "controller.pool.pool"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` from its module when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
