"""Multicast groups and clone sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from v1model.dataplane import MAX_REPLICAS, CloneSession, DataPlaneError, Replica
from v1model.p4runtime.entity import DELETE, INSERT, check_metadata, invalid
from v1model.p4runtime.values import BitsCodec
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from v1model.dataplane import DataPlane
    from v1model.p4runtime.entity import Answer
    from v1model.p4runtime.references import References

Config = TypeVar("Config")
MAX_INSTANCE = (1 << 16) - 1  # standard_metadata.egress_rid is bit<16>

_port_codec = BitsCodec(9)  # standard_metadata.egress_port is bit<9>


class ReplicationHandler:
    """Handler of p4.v1.PacketReplicationEngineEntry."""

    def __init__(self, data_plane: DataPlane, references: References) -> None:
        self._data_plane, self._references = data_plane, references
        self._metadata: dict[int, bytes] = {}  # of the groups that have some
        # A replica's port is a number or (since P4Runtime 1.4) a bytestring; reads return the same form.
        self._groups_with_bytes: set[int] = set()
        self._sessions_with_bytes: set[int] = set()

    def write(self, update_type: int, message: p4runtime_pb2.PacketReplicationEngineEntry) -> None:
        kind = message.WhichOneof("type")
        if kind == "multicast_group_entry":
            self._write_group(update_type, message.multicast_group_entry)
        elif kind == "clone_session_entry":
            self._write_session(update_type, message.clone_session_entry)
        else:
            raise invalid("a packet replication entry is a multicast group or a clone session")

    def read(self, message: p4runtime_pb2.PacketReplicationEngineEntry, answer: Answer) -> Iterator[None]:
        kind = message.WhichOneof("type")
        if kind in ("multicast_group_entry", None):
            yield from self._read_groups(message.multicast_group_entry.multicast_group_id, answer)
        if kind in ("clone_session_entry", None):
            yield from self._read_sessions(message.clone_session_entry.session_id, answer)

    def _write_group(self, update_type: int, message: p4runtime_pb2.MulticastGroupEntry) -> None:
        group = message.multicast_group_id
        _check_existence(update_type, "multicast group", group, self._data_plane.multicast_groups())
        if update_type == DELETE:
            self._references.check_group_deletion(group)
            self._data_plane.set_multicast_group(group, None)
            self._metadata.pop(group, None)
            return
        check_metadata(message.metadata)
        self._data_plane.set_multicast_group(group, _decode_replicas(message.replicas))
        _mark(self._groups_with_bytes, group, message.replicas)
        self._metadata.pop(group, None)
        if message.metadata:
            self._metadata[group] = message.metadata

    def _write_session(self, update_type: int, message: p4runtime_pb2.CloneSessionEntry) -> None:
        session = message.session_id
        _check_existence(update_type, "clone session", session, self._data_plane.clone_sessions())
        if update_type == DELETE:
            self._data_plane.set_clone_session(session, None)
            return
        if message.packet_length_bytes < 0:
            raise invalid(f"clone session {session}: packet_length_bytes is negative")
        config = CloneSession(
            _decode_replicas(message.replicas), message.packet_length_bytes, message.class_of_service
        )
        self._data_plane.set_clone_session(session, config)
        _mark(self._sessions_with_bytes, session, message.replicas)

    def _read_groups(self, wanted: int, answer: Answer) -> Iterator[None]:
        for group, replicas in _chosen(self._data_plane.multicast_groups(), wanted):
            yield
            entity = answer.add()
            message = entity.packet_replication_engine_entry.multicast_group_entry
            message.multicast_group_id = group
            message.metadata = self._metadata.get(group, b"")
            _encode_replicas(replicas, message.replicas, as_bytes=group in self._groups_with_bytes)

    def _read_sessions(self, wanted: int, answer: Answer) -> Iterator[None]:
        for session, config in _chosen(self._data_plane.clone_sessions(), wanted):
            yield
            entity = answer.add()
            message = entity.packet_replication_engine_entry.clone_session_entry
            message.session_id = session
            message.class_of_service = config.class_of_service
            message.packet_length_bytes = config.packet_length_bytes
            _encode_replicas(config.replicas, message.replicas, as_bytes=session in self._sessions_with_bytes)


def _chosen(existing: Mapping[int, Config], wanted: int) -> list[tuple[int, Config]]:
    """Return the group or session of an id, or all for 0."""
    if not wanted:
        return list(existing.items())
    return [(wanted, existing[wanted])] if wanted in existing else []


def _check_existence(update_type: int, kind: str, own_id: int, existing: Iterable[int]) -> None:
    if not own_id:
        raise invalid(f"0 is not the id of a {kind}")
    if update_type == INSERT and own_id in existing:
        raise DataPlaneError("ALREADY_EXISTS", f"{kind} {own_id} exists")
    if update_type != INSERT and own_id not in existing:
        raise DataPlaneError("NOT_FOUND", f"there is no {kind} {own_id}")


def _decode_replicas(messages: Sequence[p4runtime_pb2.Replica]) -> tuple[Replica, ...]:
    if len(messages) > MAX_REPLICAS:
        message = f"{len(messages)} replicas; a group or session has at most {MAX_REPLICAS}"
        raise DataPlaneError("RESOURCE_EXHAUSTED", message)
    replicas = tuple(_decode_replica(message) for message in messages)
    if len(set(replicas)) < len(replicas):
        raise invalid("two replicas have the same port and instance")
    return replicas


def _decode_replica(message: p4runtime_pb2.Replica) -> Replica:
    if message.instance > MAX_INSTANCE:
        raise invalid(f"a replica's instance is at most {MAX_INSTANCE}, not {message.instance}")
    port = (
        _port_codec.decode(message.port) if message.WhichOneof("port_kind") == "port" else message.egress_port
    )
    if port >> _port_codec.width:
        raise invalid(f"port {port} does not fit bit<{_port_codec.width}>")
    return Replica(port, message.instance)


def _encode_replicas(
    replicas: Iterable[Replica], messages: Sequence[p4runtime_pb2.Replica], *, as_bytes: bool
) -> None:
    for replica in replicas:
        message = messages.add(instance=replica.instance)  # type: ignore[attr-defined]  # a repeated field
        if as_bytes:
            message.port = _port_codec.encode(replica.port)
        else:
            message.egress_port = replica.port


def _mark(ids: set[int], own_id: int, replicas: Sequence[p4runtime_pb2.Replica]) -> None:
    if any(replica.WhichOneof("port_kind") == "port" for replica in replicas):
        ids.add(own_id)
    else:
        ids.discard(own_id)
