"""Translation of PacketIn and PacketOut metadata between P4Info's fields and the header before the packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.p4runtime.entity import invalid
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model import ir
    from v1model.p4runtime.values import Codec, CodecFactory
    from v1model.protos.p4.config.v1 import p4info_pb2


class PacketHeader:
    """Layout of a @controller_header for the control plane. Without one, packets have no metadata."""

    def __init__(
        self,
        info: p4info_pb2.ControllerPacketMetadata | None,
        header: ir.Header | None,
        codecs: CodecFactory,
    ) -> None:
        self._fields: list[tuple[int, int, int, Codec]] = []  # id, shift from the right, mask, codec
        members = {member.name: member for member in info.metadata} if info else {}
        fields = [(name, getattr(type_, "width", 1)) for name, type_ in header.fields] if header else []
        if unknown := members.keys() - {name for name, _ in fields}:
            raise invalid(f"P4Info's packet metadata {', '.join(sorted(unknown))} is not in the program")
        self.length_bytes = (sum(width for _, width in fields) + 7) // 8
        shift = self.length_bytes * 8
        for name, width in fields:  # those that the P4Info leaves out are padding
            shift -= width
            if member := members.get(name):
                codec = codecs.codec(width, member.type_name.name)
                self._fields.append((member.id, shift, (1 << width) - 1, codec))
        self._by_id = {field_id: (shift, codec) for field_id, shift, _, codec in self._fields}

    def pack(self, metadata: Sequence[p4runtime_pb2.PacketMetadata]) -> bytes:
        """Return the header's bytes; every field must be given once."""
        if len(metadata) != len(self._fields):
            raise invalid(f"{len(metadata)} metadata fields given, {len(self._fields)} needed")
        value = 0
        seen = set()
        for item in metadata:
            if item.metadata_id not in self._by_id or item.metadata_id in seen:
                raise invalid(f"metadata field {item.metadata_id} does not exist or is given twice")
            seen.add(item.metadata_id)
            shift, codec = self._by_id[item.metadata_id]
            value |= codec.decode(item.value) << shift
        return value.to_bytes(self.length_bytes, "big")

    def unpack(self, data: bytes, message: p4runtime_pb2.PacketIn) -> None:
        """Split a packet for the CPU port into `message`'s metadata and payload."""
        value = int.from_bytes(data[: self.length_bytes], "big")
        for field_id, shift, mask, codec in self._fields:
            message.metadata.add(metadata_id=field_id, value=codec.encode(value >> shift & mask))
        message.payload = data[self.length_bytes :]
