"""Digest entries: how the switch collects digests in lists. The lists themselves are stream messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError, DigestConfig
from v1model.p4runtime.entity import DELETE, INSERT, invalid
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.dataplane import DataPlane, DigestList
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.schema import Schema


class DigestHandler:
    """Handler of p4.v1.DigestEntry, DigestList and DigestListAck."""

    def __init__(self, schema: Schema, data_plane: DataPlane) -> None:
        self._schema, self._data_plane = schema, data_plane

    def write(self, update_type: int, message: p4runtime_pb2.DigestEntry) -> None:
        digest = self._schema.digest(message.digest_id)
        exists = digest.name in self._data_plane.digests()
        if update_type == INSERT and exists:
            raise DataPlaneError("ALREADY_EXISTS", f"digest {digest.name} is configured")
        if update_type != INSERT and not exists:
            raise DataPlaneError("NOT_FOUND", f"digest {digest.name} is not configured")
        if update_type == DELETE:
            self._data_plane.set_digest(digest.name, None)
            return
        config = message.config
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"digest {digest.name}: times and sizes can't be negative")
        self._data_plane.set_digest(
            digest.name, DigestConfig(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns)
        )

    def read(self, message: p4runtime_pb2.DigestEntry, answer: Answer) -> Iterator[None]:
        wanted = self._schema.digest(message.digest_id).name if message.digest_id else None
        for name, config in self._data_plane.digests().items():
            if wanted not in (None, name) or name not in self._schema.digests_by_name:
                continue
            entity = answer.add()
            entity.digest_entry.digest_id = self._schema.digests_by_name[name].id
            entity.digest_entry.config.SetInParent()
            entity.digest_entry.config.max_timeout_ns = config.max_timeout_ns
            entity.digest_entry.config.max_list_size = config.max_list_size
            entity.digest_entry.config.ack_timeout_ns = config.ack_timeout_ns
            yield

    def encode_list(self, digests: DigestList) -> p4runtime_pb2.StreamMessageResponse:
        """Return the stream message for a list of the data plane."""
        info = self._schema.digests_by_name[digests.digest]
        message = p4runtime_pb2.StreamMessageResponse()
        message.digest.digest_id = info.id
        message.digest.list_id = digests.list_id
        message.digest.timestamp = digests.timestamp_ns
        for sample in digests.data:
            info.data.encode(sample, message.digest.data.add())
        return message

    def acknowledge(self, message: p4runtime_pb2.DigestListAck) -> None:
        self._data_plane.acknowledge_digest(self._schema.digest(message.digest_id).name, message.list_id)
