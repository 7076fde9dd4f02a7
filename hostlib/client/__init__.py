"""The client of the pool: fetches, puts and looks up blocks, within windows."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.client.client import Client
    from hostlib.client.client_options import ClientOptions

__all__ = ["Client", "ClientOptions"]
_MODULES = {"Client": "hostlib.client.client", "ClientOptions": "hostlib.client.client_options"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` from its module when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
