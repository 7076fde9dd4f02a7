"""A P4Runtime session for tests, as plain as can be: the stub, and the stream's messages by kind."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import text_format

from v1model.protos.google.rpc import code_pb2, status_pb2
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

HANDSHAKE_TIMEOUT_S = 10.0


class P4RuntimeClient:
    """A session with one device; construction waits for the answer to the arbitration."""

    def __init__(
        self, device_id: int, address: str, election_id: tuple[int, int], role: str | None = None
    ) -> None:
        self.device_id, self.election_id = device_id, election_id
        self.stream_out_q: queue.Queue[Any] = queue.Queue()
        kinds = p4runtime_pb2.StreamMessageResponse.DESCRIPTOR.oneofs_by_name["update"].fields
        self.stream_in_q: dict[str, queue.Queue[Any]] = {kind.name: queue.Queue() for kind in kinds}
        self._channel = grpc.insecure_channel(address)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._stream = self.stub.StreamChannel(iter(self.stream_out_q.get, None))
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = device_id
        request.arbitration.election_id.high, request.arbitration.election_id.low = election_id
        if role is not None:
            request.arbitration.role.name = role
        self.stream_out_q.put(request)
        if self.get_stream_packet("arbitration", HANDSHAKE_TIMEOUT_S) is None:
            self.tear_down()
            raise ConnectionError(f"{address}: no P4Runtime server takes device {device_id}")

    def get_stream_packet(self, kind: str, timeout: float) -> Any | None:
        """The next stream message of a kind; None if there is none in so many seconds."""
        try:
            return self.stream_in_q[kind].get(timeout=timeout)
        except queue.Empty:
            return None

    def get_p4info(self) -> p4info_pb2.P4Info:
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.response_type = request.P4INFO_AND_COOKIE
        p4info: p4info_pb2.P4Info = self.stub.GetForwardingPipelineConfig(request).config.p4info
        return p4info

    def set_pipeline(self, p4info: Path, device_config: Path) -> None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.election_id.high, request.election_id.low = self.election_id
        request.action = request.VERIFY_AND_COMMIT
        text_format.Parse(p4info.read_text(), request.config.p4info, allow_unknown_field=True)
        request.config.p4_device_config = device_config.read_bytes()
        self.stub.SetForwardingPipelineConfig(request)

    def write(self, *updates: p4runtime_pb2.Update) -> None:
        """Raises grpc.RpcError; `p4_errors` has its details."""
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id, updates=updates)
        request.election_id.high, request.election_id.low = self.election_id
        self.stub.Write(request)

    def read(self, *entities: p4runtime_pb2.Entity) -> list[p4runtime_pb2.Entity]:
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=entities)
        return [entity for response in self.stub.Read(request) for entity in response.entities]

    def api_version(self) -> str:
        return str(self.stub.Capabilities(p4runtime_pb2.CapabilitiesRequest()).p4runtime_api_version)

    def tear_down(self) -> None:
        self.stream_out_q.put(None)
        self._stream.cancel()
        self._receiver.join()
        self._channel.close()

    def _receive(self) -> None:
        try:
            for message in self._stream:
                self.stream_in_q[message.WhichOneof("update")].put(message)
        except grpc.RpcError:
            pass  # the stream is over; whoever waits for a message runs into the timeout


def p4_errors(error: grpc.RpcError) -> Iterable[p4runtime_pb2.Error]:
    """All errors of a batch, OK ones too."""
    (details,) = (one.value for one in error.trailing_metadata() if one.key == "grpc-status-details-bin")
    status = status_pb2.Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    for detail in status.details:
        p4_error = p4runtime_pb2.Error()
        assert detail.Unpack(p4_error)
        yield p4_error


def error_text(error: grpc.RpcError) -> str:
    """The codes and messages of a failed batch."""
    return ", ".join(f"{code_pb2.Code.Name(one.canonical_code)} {one.message}" for one in p4_errors(error))
