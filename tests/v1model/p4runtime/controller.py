"""A P4Runtime client for tests: entities by name, errors as codes."""

from __future__ import annotations

import time
from typing import Any

import grpc

from tests.v1model.p4runtime.client import P4RuntimeClient, p4_errors
from tests.v1model.p4runtime.engines import Artifacts
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

INSERT, MODIFY, DELETE = (getattr(p4runtime_pb2.Update, name) for name in ("INSERT", "MODIFY", "DELETE"))
Entity = p4runtime_pb2.Entity
CONTROL = "FlowIngress."


class Controller:
    """The primary controller of a switch that runs control.p4."""

    def __init__(
        self, address: str, p4info: p4info_pb2.P4Info, election_id: int = 1, role: str | None = None
    ) -> None:
        self.address = address
        self.client = P4RuntimeClient(0, address, (0, election_id), role)
        self.p4info = p4info

    def set_pipeline(
        self, artifacts: Artifacts, action: str = "VERIFY_AND_COMMIT", cookie: int | None = None
    ) -> str:
        """The code of a SetForwardingPipelineConfig."""
        try:
            self.client.stub.SetForwardingPipelineConfig(self.pipeline_request(artifacts, action, cookie))
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def pipeline_request(
        self, artifacts: Artifacts, action: str, cookie: int | None = None
    ) -> p4runtime_pb2.SetForwardingPipelineConfigRequest:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(action=action)
        request.election_id.low = self.client.election_id[1]
        if action != "COMMIT":
            request.config.p4info.CopyFrom(artifacts.p4info)
            request.config.p4_device_config = artifacts.device_config
            if cookie is not None:
                request.config.cookie.cookie = cookie
        return request

    def close(self) -> None:
        self.client.tear_down()

    # --- ids

    def id(self, kind: str, name: str) -> int:
        return int(self._info(kind, name).preamble.id)

    def _info(self, kind: str, name: str) -> Any:
        infos = getattr(self.p4info, kind)
        return next(info for info in infos if info.preamble.name in (name, CONTROL + name))

    # --- entities

    def action(self, name: str, **arguments: int | bytes) -> p4runtime_pb2.Action:
        info = self._info("actions", name)
        ids = {param.name: param.id for param in info.params}
        message = p4runtime_pb2.Action(action_id=info.preamble.id)
        for argument, value in arguments.items():
            message.params.add(param_id=ids[argument], value=as_bytes(value))
        return message

    def entry(
        self,
        table: str,
        matches: dict[str, Any] | None = None,
        action: p4runtime_pb2.Action | None = None,
        **fields: Any,
    ) -> Entity:
        """matches: name to an int (exact, optional), (value, length), (value, mask) or (low, high)."""
        info = self._info("tables", table)
        fields_by_name = {field.name: field for field in info.match_fields}
        entity = Entity()
        entity.table_entry.table_id = info.preamble.id
        for name, value in (matches or {}).items():
            fill_match(entity.table_entry.match.add(), fields_by_name[name], value)
        if action is not None:
            entity.table_entry.action.action.CopyFrom(action)
        for name, value in fields.items():
            set_field(entity.table_entry, name, value)
        return entity

    # --- requests

    def write(self, update_type: int, *entities: Entity) -> list[str]:
        """The code of each update."""
        request = p4runtime_pb2.WriteRequest()
        for entity in entities:
            request.updates.add(type=update_type, entity=entity)
        return self.write_request(request)

    def write_request(self, request: p4runtime_pb2.WriteRequest) -> list[str]:
        codes = ["OK"] * len(request.updates)
        request.device_id, request.election_id.low = 0, self.client.election_id[1]
        try:
            self.client.stub.Write(request)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNKNOWN:
                return [error.code().name] * len(codes)
            codes = [code_pb2.Code.Name(p4_error.canonical_code) for p4_error in p4_errors(error)]
            assert len(codes) == len(request.updates)
        return codes

    def insert(self, *entities: Entity) -> None:
        assert set(self.write(INSERT, *entities)) <= {"OK"}

    def read(self, *entities: Entity) -> list[Entity]:
        return self.client.read(*entities)

    def everything(self, kind: str, **fields: Any) -> list[Entity]:
        """A wildcard read of one kind of entity."""
        return self.read(self.entity(kind, **fields))

    def entity(self, kind: str = "", **fields: Any) -> Entity:
        """An entity of this kind."""
        entity = Entity()
        if kind:
            getattr(entity, kind).SetInParent()
        for name, value in fields.items():
            set_field(getattr(entity, kind), name, value)
        return entity

    def read_code(self, *entities: Entity) -> str:
        try:
            self.read(*entities)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def read_table(self, table: str, **fields: Any) -> list[Entity]:
        return self.read(self.entry(table, **fields))

    def send_packet(self, payload: bytes, **metadata: int) -> None:
        info = self._info("controller_packet_metadata", "packet_out")
        request = p4runtime_pb2.StreamMessageRequest()
        request.packet.payload = payload
        for field in info.metadata:
            request.packet.metadata.add(metadata_id=field.id, value=as_bytes(metadata.get(field.name, 0)))
        self.client.stream_out_q.put(request)

    def learned_again(self, acknowledged: Any, payload: bytes, timeout_s: float = 60) -> Any:
        """The digest of a packet after a list was acknowledged; both are sent until there is one. BMv2
        handles packets beside acknowledgements, so that either may overtake what was written before it."""
        acknowledgement = p4runtime_pb2.StreamMessageRequest()
        acknowledgement.digest_ack.digest_id = acknowledged.digest_id
        acknowledgement.digest_ack.list_id = acknowledged.list_id
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            self.client.stream_out_q.put(acknowledgement)
            self.send_packet(payload)
            if (message := self.client.get_stream_packet("digest", timeout=1)) is not None:
                return message.digest
        raise AssertionError(f"no digest in {timeout_s} s")

    def receive(self, kind: str, timeout_s: float = 60) -> Any:
        message = self.client.get_stream_packet(kind, timeout=timeout_s)
        assert message is not None, f"no {kind} in {timeout_s} s"
        return getattr(message, kind)


def as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def fill_match(message: p4runtime_pb2.FieldMatch, field: p4info_pb2.MatchField, value: Any) -> None:
    message.field_id = field.id
    kind = p4info_pb2.MatchField.MatchType.Name(field.match_type).lower()
    if kind in ("exact", "optional"):
        getattr(message, kind).value = as_bytes(value)
    elif kind == "lpm":
        message.lpm.value, message.lpm.prefix_len = as_bytes(value[0]), value[1]
    elif kind == "ternary":
        message.ternary.value, message.ternary.mask = map(as_bytes, value)
    else:
        message.range.low, message.range.high = map(as_bytes, value)


def set_field(message: Any, name: str, value: Any) -> None:
    """Sets a scalar or copies a message; True for a message means present and empty."""
    if value is True and message.DESCRIPTOR.fields_by_name[name].message_type is not None:
        getattr(message, name).SetInParent()
    elif hasattr(value, "DESCRIPTOR"):
        getattr(message, name).CopyFrom(value)
    else:
        setattr(message, name, value)
