"""Number of bytes of a value on the wire: one size for all hosts and switches of a network.

A process uses one size, which the environment variable WEIR_VALUE_BYTES sets when it starts: its constants
and its compiled core depend on it. HELLO and MEMBERS carry their sender's size, and hosts and controllers
refuse each other where the two differ.
"""

from __future__ import annotations

import os
from typing import Final

from hostlib.protocol.errors import ConfigError

VARIABLE: Final = "WEIR_VALUE_BYTES"
SIZES: Final = (512, 1408, 8192)
"""Bytes: the most that BMv2 can serve from its registers, a frame of 1,530 bytes, a jumbo frame."""
DEFAULT_BYTES: Final = 512


def chosen_bytes(text: str | None) -> int:
    """Return the size that the variable's text asks for, DEFAULT_BYTES for None or nothing; ConfigError
    for one that there is not."""
    if not text:
        return DEFAULT_BYTES
    if text not in map(str, SIZES):
        sizes = ", ".join(map(str, SIZES))
        raise ConfigError(f"{VARIABLE}: {text!r} is no size of values: choose one of {sizes} (bytes)")
    return int(text)


def encoded(size_bytes: int) -> int:
    """Return how a HELLO or MEMBERS says a size: 0 for the one that all versions speak."""
    return 0 if size_bytes == DEFAULT_BYTES else size_bytes


def decoded(said: int) -> int:
    """Return the size that a HELLO or MEMBERS says, in bytes; perhaps none of SIZES."""
    return said or DEFAULT_BYTES


VALUE_BYTES: Final = chosen_bytes(os.environ.get(VARIABLE))
