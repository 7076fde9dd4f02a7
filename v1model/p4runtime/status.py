"""Errors in gRPC's form (P4Runtime 1.4, "Error Reporting Messages")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from v1model.protos.google.rpc import code_pb2, status_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.dataplane import DataPlaneError

# gRPC clients refuse more metadata than 8 KiB by default; binary metadata may travel in base64, and there are
# other fields.
MAX_DETAILS_BYTES = 5500
MIN_DETAIL_BYTES = len("type.googleapis.com/p4.v1.Error")  # each has at least its type's name
SPACE = "v1model"
MAX_ECHO_BYTES = 1024  # of a failed stream message, repeated in its error


def grpc_code(error: DataPlaneError) -> grpc.StatusCode:
    return grpc.StatusCode[error.code]


def canonical_code(error: DataPlaneError) -> int:
    return int(code_pb2.Code.Value(error.code))


def write_status(results: Sequence[DataPlaneError | None]) -> status_pb2.Status | None:
    """Return the status of a batch: None on success, else one p4.v1.Error for each update."""
    failed = [(index, error) for index, error in enumerate(results) if error]
    if not failed:
        return None
    index, error = failed[0]
    summary = f"{len(failed)} of {len(results)} updates failed; at index {index}: {error.code}, {error}"
    status = status_pb2.Status(code=code_pb2.UNKNOWN, message=summary)
    if len(results) * MIN_DETAIL_BYTES > MAX_DETAILS_BYTES:
        return status  # the summary must do
    for with_message in (True, False):
        del status.details[:]
        for result in results:
            status.details.add().Pack(_p4_error(result, with_message=with_message))
        if status.ByteSize() <= MAX_DETAILS_BYTES:
            return status
    del status.details[:]
    return status


def stream_error(
    error: DataPlaneError, request: p4runtime_pb2.StreamMessageRequest
) -> p4runtime_pb2.StreamMessageResponse:
    """Return the error message to a controller for a stream message that failed."""
    response = p4runtime_pb2.StreamMessageResponse()
    response.error.canonical_code = canonical_code(error)
    response.error.message = str(error)
    response.error.space = SPACE
    kind = request.WhichOneof("update")
    if kind == "packet":
        response.error.packet_out.SetInParent()
        if sum(item.ByteSize() for item in request.packet.metadata) <= MAX_ECHO_BYTES:
            response.error.packet_out.packet_out.metadata.extend(request.packet.metadata)
    elif kind == "digest_ack":
        response.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        response.error.other.SetInParent()
    return response


def _p4_error(result: DataPlaneError | None, *, with_message: bool) -> p4runtime_pb2.Error:
    if result is None:
        return p4runtime_pb2.Error(canonical_code=code_pb2.OK)
    if not with_message:
        return p4runtime_pb2.Error(canonical_code=canonical_code(result))
    return p4runtime_pb2.Error(canonical_code=canonical_code(result), message=str(result), space=SPACE)
