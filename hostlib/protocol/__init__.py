"""The protocol between hosts: its messages, keys, homes, lists of members, and errors."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.protocol.errors import (
        BlockNotFoundError,
        CorruptBlockError,
        HostlibError,
        MalformedError,
        PutRefusedError,
        TransferError,
        TransferTimeoutError,
    )
    from hostlib.protocol.homes import home_of, home_order
    from hostlib.protocol.members import Member, Members
    from hostlib.protocol.seal import Seal
    from hostlib.protocol.tenancy import seal_of
    from hostlib.protocol.transfer import BlockRef, FetchedBlock, FetchedChain
    from hostlib.protocol.wire import Message, decode, encode

__all__ = [
    "BlockNotFoundError",
    "BlockRef",
    "CorruptBlockError",
    "FetchedBlock",
    "FetchedChain",
    "HostlibError",
    "MalformedError",
    "Member",
    "Members",
    "Message",
    "PutRefusedError",
    "Seal",
    "TransferError",
    "TransferTimeoutError",
    "decode",
    "encode",
    "home_of",
    "home_order",
    "seal_of",
]
_MODULES = {
    "BlockNotFoundError": "hostlib.protocol.errors",
    "BlockRef": "hostlib.protocol.transfer",
    "CorruptBlockError": "hostlib.protocol.errors",
    "FetchedBlock": "hostlib.protocol.transfer",
    "FetchedChain": "hostlib.protocol.transfer",
    "HostlibError": "hostlib.protocol.errors",
    "MalformedError": "hostlib.protocol.errors",
    "Member": "hostlib.protocol.members",
    "Members": "hostlib.protocol.members",
    "Message": "hostlib.protocol.wire",
    "PutRefusedError": "hostlib.protocol.errors",
    "Seal": "hostlib.protocol.seal",
    "TransferError": "hostlib.protocol.errors",
    "TransferTimeoutError": "hostlib.protocol.errors",
    "decode": "hostlib.protocol.wire",
    "encode": "hostlib.protocol.wire",
    "home_of": "hostlib.protocol.homes",
    "home_order": "hostlib.protocol.homes",
    "seal_of": "hostlib.protocol.tenancy",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` from its module when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
