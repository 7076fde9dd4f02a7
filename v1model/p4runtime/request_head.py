"""Sender of a request that only a primary may send, read without the rest of the request.

The rest may be 8 MiB of millions of messages. To `RequestHead`, which has the same field numbers, they are
unknown fields, which are skipped.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, message_factory

from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.protos.pool import POOL

KINDS = (p4runtime_pb2.WriteRequest, p4runtime_pb2.SetForwardingPipelineConfigRequest)
_FIELDS = ("device_id", "election_id", "role")


def _make() -> Any:
    described = descriptor_pb2.DescriptorProto()
    p4runtime_pb2.WriteRequest.DESCRIPTOR.CopyToProto(described)
    fields = [field for field in described.field if field.name in _FIELDS]
    file = descriptor_pb2.FileDescriptorProto(
        name="weir/request_head.proto", package="weir", syntax="proto3", dependency=["p4/v1/p4runtime.proto"]
    )
    file.message_type.add(name="RequestHead", field=fields)
    POOL.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName("weir.RequestHead"))


RequestHead = _make()
