"""Channels to a switch's P4Runtime server: in clear, or over TLS with certificates on both sides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import grpc

from controller.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.config import ClientTls


LOOK_S: Final = 10.0
"""Seconds between two wake-ups of gRPC's threads that wait for a stream; a message wakes them at once."""


def let_threads_sleep() -> None:
    """Have gRPC's threads sleep longer, in a process with many streams.

    Each thread wakes up ten times a second to look for a signal, which is the main thread's affair. How often
    is no part of gRPC's interface, so another version of gRPC may ignore it.
    """
    common = sys.modules.get("grpc._common")
    if hasattr(common, "MAXIMUM_WAIT_TIMEOUT"):
        setattr(common, "MAXIMUM_WAIT_TIMEOUT", LOOK_S)  # noqa: B010  (mypy does not know it)


def open_channel(
    address: str, tls: ClientTls | None, options: Sequence[tuple[str, int | str]] = ()
) -> grpc.Channel:
    """Return a channel that is not connected yet; raises ConfigError if a file of `tls` can't be read."""
    if tls is None:
        return grpc.insecure_channel(address, options=options)
    try:
        credentials = grpc.ssl_channel_credentials(
            tls.authority.read_bytes(), tls.key.read_bytes(), tls.certificate.read_bytes()
        )
    except OSError as error:
        raise ConfigError(f"tls: {error.filename}: {error.strerror}") from None
    named = [*options, ("grpc.ssl_target_name_override", tls.server_name)]
    return grpc.secure_channel(address, credentials, options=named)
