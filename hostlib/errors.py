"""Everything that hostlib raises.

HostlibError
├── ConfigError               a configuration file that can't be used
├── MalformedError            bytes that are no message of the protocol
│   └── ChecksumError         a message whose value does not match its checksum
└── TransferError             a block that could not be moved
    ├── BlockNotFoundError    its home does not hold it
    ├── TransferTimeoutError  no answer before the deadline
    ├── CorruptBlockError     wrong content, also when fetched past the pool
    └── OverloadedError       the client's bounded queue is full
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlib.wire import Message


class HostlibError(Exception):
    """Root of the tree."""


class ConfigError(HostlibError):
    """A configuration file that can't be used; the text says where and what to do."""


class MalformedError(HostlibError):
    """Bytes that are no message of the protocol; `reason` is a short word to count by."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed message: {reason}")
        self.reason = reason


class ChecksumError(MalformedError):
    """A well-formed message whose value does not match its checksum; `message` is not to be trusted."""

    def __init__(self, message: Message) -> None:
        super().__init__("checksum")
        self.message = message


class TransferError(HostlibError):
    """A block that could not be moved; `key` names it."""

    def __init__(self, key: bytes, why: str) -> None:
        super().__init__(f"block {key.hex()}: {why}")
        self.key = key


class BlockNotFoundError(TransferError):
    """The block's home does not hold it."""


class TransferTimeoutError(TransferError):
    """No answer before the deadline, retransmissions included."""


class CorruptBlockError(TransferError):
    """The content is wrong, also when fetched past the pool."""


class OverloadedError(TransferError):
    """The client's bounded queue is full."""
