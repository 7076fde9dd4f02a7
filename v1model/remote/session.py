"""Minimal P4Runtime client for the commands."""

from __future__ import annotations

import json
import queue
import time
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import struct_pb2

from v1model.dataplane import DataPlaneError
from v1model.protos.google.rpc import code_pb2, status_pb2
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Action = p4runtime_pb2.SetForwardingPipelineConfigRequest.Action

TIMEOUT_S = 20.0
PREDECESSOR_ENDS_S, RETRY_S = 2.0, 0.05
PIPELINE_TIMEOUT_S = 330.0  # a switch gives up compiling after 300 s
STATISTICS = "/weir.v1model.Switch/Statistics"
OWN_CALL = "/weir.v1model.Switch/Call"
QUEUES = "/weir.v1model.Queues/Limit"


class Session:
    """Session with a switch. The first write asks to be the primary, with `election_id`; reads need nothing.

    Errors are DataPlaneError with the server's code and message.
    """

    def __init__(self, address: str, device_id: int, election_id: int) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._device_id, self._election_id = device_id, election_id
        self._requests: queue.Queue[p4runtime_pb2.StreamMessageRequest | None] = queue.Queue()
        self._is_primary = False
        self._answers: Any = None  # the stream that makes this client the primary; ends with its object

    def close(self) -> None:
        self._requests.put(None)
        if self._answers is not None:
            self._answers.cancel()
        self._channel.close()

    def pipeline(self) -> p4runtime_pb2.ForwardingPipelineConfig:
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self._device_id)
        try:
            answer = self._stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise _error(error) from error
        config: p4runtime_pb2.ForwardingPipelineConfig = answer.config
        return config

    def statistics(self) -> dict[str, Any]:
        """Return a weir-switch's counts (`Switch.statistics()`). Other switches answer UNIMPLEMENTED."""
        call: Any = self._channel.unary_unary(STATISTICS, request_serializer=None, response_deserializer=None)
        try:
            counted: dict[str, Any] | None = json.loads(call(b"", timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            raise _error(error) from error
        if counted is None:
            raise DataPlaneError("FAILED_PRECONDITION", "the switch has no program yet")
        return counted

    def own_call(self, data: bytes, *, only_reads: bool = False) -> bytes:
        """Return a weir-switch's answer to a call of BMv2's services. Other switches answer UNIMPLEMENTED."""
        if not only_reads:
            self._become_primary()
        return self._call(OWN_CALL, data)

    def _call(self, method: str, data: bytes) -> bytes:
        request = p4runtime_pb2.WriteRequest(device_id=self._device_id)
        request.election_id.low = self._election_id
        request.updates.add().entity.extern_entry.entry.value = data
        call: Any = self._channel.unary_unary(method, request_serializer=None, response_deserializer=None)
        try:
            answer: bytes = call(request.SerializeToString(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise _error(error) from error
        return answer

    def set_pipeline(self, action: Action, config: p4runtime_pb2.ForwardingPipelineConfig | None) -> None:
        """Call SetForwardingPipelineConfig, as the primary."""
        self._become_primary()
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=self._device_id, action=action)
        request.election_id.low = self._election_id
        if config is not None:
            request.config.CopyFrom(config)
        try:
            self._stub.SetForwardingPipelineConfig(request, timeout=PIPELINE_TIMEOUT_S)
        except grpc.RpcError as error:
            raise _error(error) from error

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
        """Limit queues of a weir-switch (`Switch.limit_queues`), as the primary.

        Other switches answer UNIMPLEMENTED.
        """
        request = struct_pb2.Struct()
        request.update({"limits": dict(limits), "port": port, "priority": priority})
        self._become_primary()
        self._call(QUEUES, request.SerializeToString())

    def read(self, entity: p4runtime_pb2.Entity) -> Iterator[p4runtime_pb2.Entity]:
        request = p4runtime_pb2.ReadRequest(device_id=self._device_id, entities=[entity])
        try:
            for response in self._stub.Read(request, timeout=TIMEOUT_S):
                yield from response.entities
        except grpc.RpcError as error:
            raise _error(error) from error

    def write(self, update_type: p4runtime_pb2.Update.Type, entity: p4runtime_pb2.Entity) -> None:
        self._become_primary()
        update = p4runtime_pb2.Update(type=update_type, entity=entity)
        request = p4runtime_pb2.WriteRequest(device_id=self._device_id, updates=[update])
        request.election_id.low = self._election_id
        try:
            self._stub.Write(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise _error(error) from error

    def _become_primary(self) -> None:
        """Become the primary; raises DataPlaneError.

        A command that just ended may have had the same election id, so this is retried for a while.
        """
        until = time.monotonic() + PREDECESSOR_ENDS_S
        while not self._is_primary:
            try:
                self._ask_to_be_primary()
            except DataPlaneError as error:
                if error.code != "INVALID_ARGUMENT" or time.monotonic() > until:
                    raise
                time.sleep(RETRY_S)

    def _ask_to_be_primary(self) -> None:
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self._device_id
        request.arbitration.election_id.low = self._election_id
        requests: queue.Queue[p4runtime_pb2.StreamMessageRequest | None] = queue.Queue()
        requests.put(request)
        self._requests = requests
        self._answers = self._stub.StreamChannel(iter(requests.get, None))
        try:
            answer = next(iter(self._answers))
        except grpc.RpcError as error:
            raise _error(error) from error
        if answer.arbitration.status.code != grpc.StatusCode.OK.value[0]:
            self._requests.put(None)
            self._answers.cancel()  # otherwise the next try's election id would be in use
            message = "another controller is the primary; give a higher --election-id"
            raise DataPlaneError("PERMISSION_DENIED", message)
        self._is_primary = True


def _error(error: grpc.RpcError) -> DataPlaneError:
    """Return the first error of a batch, or the call's own."""
    metadata: Any = error.trailing_metadata() or ()
    details = dict(metadata).get("grpc-status-details-bin", b"")
    for detail in status_pb2.Status.FromString(details).details:
        single = p4runtime_pb2.Error()
        if detail.Unpack(single) and single.canonical_code:
            code = code_pb2.Code.Name(single.canonical_code)
            return DataPlaneError(code, single.message)
    return DataPlaneError(error.code().name, error.details() or "")
