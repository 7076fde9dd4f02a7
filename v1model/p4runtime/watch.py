"""Watched ports of a group's members: as bytes (watch_port), or as the deprecated number (watch)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.p4runtime.entity import invalid
from v1model.p4runtime.values import BitsCodec

if TYPE_CHECKING:
    from v1model.protos.p4.v1 import p4runtime_pb2

_codec = BitsCodec(9)  # standard_metadata.egress_port is bit<9>


def watched_port(
    message: p4runtime_pb2.ActionProfileGroup.Member | p4runtime_pb2.ActionProfileAction,
) -> int | None:
    """Return the port that a member or action watches, None if it watches none."""
    kind = message.WhichOneof("watch_kind")
    if kind is None:
        return None
    port = _codec.decode(message.watch_port) if kind == "watch_port" else message.watch
    if not 0 <= port < 1 << _codec.width:
        raise invalid(f"watched port {port} does not fit bit<{_codec.width}>")
    return port


def encode_watch(port: int, message: p4runtime_pb2.ActionProfileGroup.Member, *, as_bytes: bool) -> None:
    if as_bytes:
        message.watch_port = _codec.encode(port)
    else:
        message.watch = port
