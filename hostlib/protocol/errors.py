"""Everything that hostlib raises.

HostlibError
├── ConfigError               a configuration file that can't be used
├── KeySpaceError             parameters of a KV cache that are unusable, or differ from those of others
├── LineError                 programs of a run do not understand one another (hostlib.process.lines)
├── RouterError               router and nodes do not reach one another
├── MalformedError            bytes that are no message of the protocol
│   └── ChecksumError         a message whose value does not match its checksum
├── TransferError             a block that could not be moved
│   ├── BlockNotFoundError    none of its homes holds it
│   ├── TransferTimeoutError  its homes do not answer
│   ├── CorruptBlockError     wrong content, also when fetched past the pool
│   ├── BlockTooLongError     it does not fit the buffer that it was to be read into
│   ├── PutRefusedError       a home can't keep it, and says why
│   ├── DeleteRefusedError    a storage node can't forget it, and says why
│   └── OverloadedError       the client's bounded queue is full
└── DiskError                 a storage node's disk
    ├── DiskFullError         no room for what was to be written
    └── UnreadableError       what was written can't be read back
"""

from __future__ import annotations

from typing import Any


class HostlibError(Exception):
    """Any error of `hostlib`: the root of their tree."""


class ConfigError(HostlibError):
    """A configuration file that can't be used; the text says where and what to do."""


class KeySpaceError(HostlibError):
    """Parameters of a KV cache that are unusable, or differ from those of others who share the name."""


class LineError(HostlibError):
    """A line of another program of the run that is no message."""


class RouterError(HostlibError):
    """A router that can't be reached or went away; or a node, as the router sees it."""


class MalformedError(HostlibError):
    """Bytes that are no message of the protocol; `reason` is a short word to count by."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed message: {reason}")
        self.reason = reason


class ChecksumError(MalformedError):
    """A well-formed message whose value does not match its checksum.

    `message` (a `hostlib.protocol.wire.Message`, which this module does not import) is not to be trusted.
    """

    def __init__(self, message: Any) -> None:
        super().__init__("checksum")
        self.message = message


class TransferError(HostlibError):
    """A block that could not be moved; `key` names it."""

    def __init__(self, key: bytes, why: str) -> None:
        super().__init__(f"block {key.hex()}: {why}")
        self.key = key


class BlockNotFoundError(TransferError):
    """None of the block's homes holds it."""


class TransferTimeoutError(TransferError):
    """The block's homes do not answer: not in time, or they were silent before and still are."""


class CorruptBlockError(TransferError):
    """The content is wrong, also when fetched past the pool."""


class OverloadedError(TransferError):
    """The client's bounded queue is full."""


class BlockTooLongError(TransferError):
    """The block does not fit the buffer that it was to be read into."""


class PutRefusedError(TransferError):
    """A home can't keep the block; `reason` is a REFUSED_ constant of the protocol, 0 for none of them."""

    def __init__(self, key: bytes, why: str, reason: int = 0) -> None:
        super().__init__(key, why)
        self.reason = reason


class DeleteRefusedError(TransferError):
    """A storage node can't forget the block; `reason` is a REFUSED_ constant of the protocol."""

    def __init__(self, key: bytes, why: str, reason: int = 0) -> None:
        super().__init__(key, why)
        self.reason = reason


class DiskError(HostlibError):
    """A storage node's disk."""


class DiskFullError(DiskError):
    """No room for what was to be written; none of it was."""


class UnreadableError(DiskError):
    """A record on disk that can't be read back: it is damaged, or the disk gives an error."""
