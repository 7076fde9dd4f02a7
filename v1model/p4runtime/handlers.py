"""Methods of the service as gRPC calls them.

To gRPC each is a stream of bytes. So a call can be given up before its request is there (calls.py), and a
message is parsed by the thread that needs it, not by the one that all calls share. On the wire there is no
difference.

No other Python runs while a message is parsed, and it may become twenty times as large. So large ones are
parsed one at a time, the primaries' first. Large messages that only a primary may send are not parsed for
others.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import grpc
from google.protobuf import json_format, struct_pb2
from google.protobuf.message import DecodeError

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.request_head import KINDS, RequestHead
from v1model.p4runtime.status import grpc_code
from v1model.p4runtime.turns import Turns
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from google.protobuf.message import Message

    from v1model.p4runtime.service import P4RuntimeService

# The largest device config with its P4Info, or some 80,000 table entries; in memory several times over.
MAX_MESSAGE_BYTES = 8 << 20
MAX_STREAM_MESSAGE_BYTES = 1 << 20  # a PacketOut has a packet of 64 KiB at most
MAX_READ_BYTES = 1 << 20  # of a request that changes nothing, which any client may send
MAX_PARSED_AT_ONCE_BYTES = 1 << 10  # larger messages wait for a turn
OWN_SERVICE = "weir.v1model.Switch"
QUEUE_SERVICE = "weir.v1model.Queues"
AMessage = TypeVar("AMessage", bound="Message")
_SERVICE = p4runtime_pb2.DESCRIPTOR.services_by_name["P4Runtime"]


class OwnCalls(Protocol):
    """Calls of the switch besides P4Runtime's."""

    def statistics(self) -> object:
        """Return the switch's counts."""

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None:
        """Set limits as `Switch.limit_queues`."""

    def call(self, data: bytes) -> bytes:
        """Return the answer to a Thrift message; raises DataPlaneError if it is none."""

    def only_reads(self, data: bytes) -> bool:
        """Return whether a Thrift message changes nothing."""


def handlers(service: P4RuntimeService) -> grpc.GenericRpcHandler[bytes, Message]:
    """Return the handler with which a gRPC server serves `service`."""
    requests = {
        "Write": p4runtime_pb2.WriteRequest,
        "Read": p4runtime_pb2.ReadRequest,
        "SetForwardingPipelineConfig": p4runtime_pb2.SetForwardingPipelineConfigRequest,
        "GetForwardingPipelineConfig": p4runtime_pb2.GetForwardingPipelineConfigRequest,
        "Capabilities": p4runtime_pb2.CapabilitiesRequest,
    }
    behaviours: dict[str, Any] = {
        name: partial(_answer, service, getattr(service, name), request, is_stream=name == "Read")
        for name, request in requests.items()
    }
    behaviours["StreamChannel"] = partial(_converse, service)
    methods = {
        name: grpc.stream_stream_rpc_method_handler(
            behaviour, response_serializer=lambda message: message.SerializeToString()
        )
        for name, behaviour in behaviours.items()
    }
    return grpc.method_handlers_generic_handler(_SERVICE.full_name, methods)


def own_handlers(service: P4RuntimeService, own: OwnCalls) -> grpc.GenericRpcHandler[bytes, bytes]:
    """Return the handler of weir.v1model.Switch, a service beside P4Runtime's for weir-cli.

    Statistics returns the counts of `own` as JSON; its request is empty. Call takes a WriteRequest with one
    extern entry, whose value is a call of BMv2's Thrift services; the answer is Thrift's, too. Calls that
    change something are for the primary only.
    """

    turns = Turns()  # one call may read all entries of a table; others' are not in the primary's way

    def statistics(_request: Message, _context: grpc.ServicerContext) -> bytes:
        return json.dumps(own.statistics()).encode()

    def call(request: p4runtime_pb2.WriteRequest, context: grpc.ServicerContext) -> bytes:
        data = _own_data(request)
        as_whom = service.as_reader if own.only_reads(data) else service.as_primary

        def do() -> bytes:
            with turns.turn(context.peer(), is_primary=service.is_of_primary(context)):
                return own.call(data)

        return as_whom(request, context, do)

    behaviours = {
        "Statistics": partial(
            _answer, service, statistics, p4runtime_pb2.CapabilitiesRequest, is_stream=False
        ),
        "Call": partial(_answer, service, call, p4runtime_pb2.WriteRequest, is_stream=False),
    }
    methods = {name: grpc.stream_stream_rpc_method_handler(one) for name, one in behaviours.items()}
    return grpc.method_handlers_generic_handler(OWN_SERVICE, methods)


def queue_handlers(
    service: P4RuntimeService, limit: Callable[[Mapping[str, int], int | None, int | None], None]
) -> grpc.GenericRpcHandler[bytes, bytes]:
    """Return the handler of weir.v1model.Queues/Limit, for the primary only.

    Its request is a WriteRequest with one extern entry. The entry's value is a google.protobuf.Struct of
    `limits` by name, `port` and `priority`; without one of the two, all are meant.
    """

    def set_limits(data: bytes) -> bytes:
        try:
            given: dict[str, Any] = json_format.MessageToDict(struct_pb2.Struct.FromString(data))
            limits = {str(name): int(value) for name, value in given.get("limits", {}).items()}
            place = [None if given.get(name) is None else int(given[name]) for name in ("port", "priority")]
            limit(limits, *place)
        except (DecodeError, TypeError, ValueError, AttributeError, OverflowError):
            message = "limits, port and priority must be numbers"
            raise DataPlaneError("INVALID_ARGUMENT", message) from None
        return b""

    def limit_queues(request: p4runtime_pb2.WriteRequest, context: grpc.ServicerContext) -> bytes:
        return service.as_primary(request, context, lambda: set_limits(_own_data(request)))

    behaviour = partial(_answer, service, limit_queues, p4runtime_pb2.WriteRequest, is_stream=False)
    return grpc.method_handlers_generic_handler(
        QUEUE_SERVICE, {"Limit": grpc.stream_stream_rpc_method_handler(behaviour)}
    )


def _own_data(request: p4runtime_pb2.WriteRequest) -> bytes:
    """Return the call that weir-cli has put into a request."""
    return b"".join(update.entity.extern_entry.entry.value for update in request.updates)


def _answer(
    service: P4RuntimeService,
    method: Callable[[Any, grpc.ServicerContext], Any],
    kind: type[Message],
    requests: Iterator[bytes],
    context: grpc.ServicerContext,
    *,
    is_stream: bool,
) -> Iterator[Message]:
    """Run a method with one request, and yield one answer or (`is_stream`) several."""
    with service.calls.for_request(context, is_primary=service.is_of_primary(context)):
        data = next(requests, None)
    if data is None:
        _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
    answer = method(_parsed(service, kind, data, context), context)
    del data
    if is_stream:
        yield from answer
    else:
        with service.calls.for_answer(context, is_primary=service.is_of_primary(context)):
            yield answer


def _converse(
    service: P4RuntimeService, requests: Iterable[bytes], context: grpc.ServicerContext
) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
    return service.StreamChannel(_stream_messages(service, requests, context), context)


def _stream_messages(
    service: P4RuntimeService, requests: Iterable[bytes], context: grpc.ServicerContext
) -> Iterator[p4runtime_pb2.StreamMessageRequest]:
    """Yield a controller's messages; raises DataPlaneError for an invalid one, which ends the stream."""
    for data in requests:
        if len(data) > MAX_STREAM_MESSAGE_BYTES:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED",
                f"a stream message of {len(data)} bytes; at most {MAX_STREAM_MESSAGE_BYTES} are possible",
            )
        try:
            request = _parsed_in_turn(service, p4runtime_pb2.StreamMessageRequest, data, context)
        except DecodeError:
            raise DataPlaneError("INVALID_ARGUMENT", "a stream message is no StreamMessageRequest") from None
        yield request


def _parsed(
    service: P4RuntimeService, kind: type[Message], data: bytes, context: grpc.ServicerContext
) -> Message:
    """Return a call's request, if its sender may make one of this size; otherwise the call is aborted."""
    try:
        if kind in KINDS:
            if len(data) > MAX_PARSED_AT_ONCE_BYTES:
                service.check_primary(RequestHead.FromString(data))
        elif len(data) > MAX_READ_BYTES:
            message = f"a request of {len(data)} bytes; at most {MAX_READ_BYTES} are possible"
            raise DataPlaneError("RESOURCE_EXHAUSTED", message)
        return _parsed_in_turn(service, kind, data, context)
    except DecodeError:
        _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, f"the request is no {kind.DESCRIPTOR.name}")
    except DataPlaneError as error:
        _refuse(context, grpc_code(error), str(error))


def _parsed_in_turn(
    service: P4RuntimeService, kind: type[AMessage], data: bytes, context: grpc.ServicerContext
) -> AMessage:
    with service.turn(context) if len(data) > MAX_PARSED_AT_ONCE_BYTES else nullcontext():
        return kind.FromString(data)


def _refuse(context: grpc.ServicerContext, code: grpc.StatusCode, details: str) -> NoReturn:
    context.abort(code, details)
    raise AssertionError("abort never returns")
