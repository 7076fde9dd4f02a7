"""Who reaches the server but is no controller keeps nobody from his work."""

from __future__ import annotations

import contextlib
import itertools
import queue
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, cast

import grpc
import pytest

from tests.v1model.p4runtime.controller import INSERT, Controller
from tests.v1model.p4runtime.engines import CPU_PORT, Artifacts, RunningSwitch
from tests.v1model.p4runtime.http2 import HalfOpen
from tests.v1model.p4runtime.test_tables import index_entry
from v1model.dataplane import CounterValue, DataPlaneError, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.p4runtime import calls, handlers
from v1model.p4runtime import pipeline as pieces
from v1model.p4runtime.calls import MAX_RUNNING, MAX_RUNNING_OF_PEER, MAX_WAITING, Calls
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.pipeline import ENTITIES_AT_ONCE, Pipeline
from v1model.p4runtime.server import P4RuntimeServer
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

TIMEOUT_S = 60.0
METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "StreamChannel")


@pytest.fixture
def stranger(switch: RunningSwitch) -> Iterator[p4runtime_pb2_grpc.P4RuntimeStub]:
    """A client with a connection of its own that takes part in no arbitration."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(switch.address, options=options) as channel:
        yield p4runtime_pb2_grpc.P4RuntimeStub(channel)


def is_served(c: Controller, stranger: p4runtime_pb2_grpc.P4RuntimeStub) -> None:
    """The primary writes and reads, a newcomer is answered, another controller takes over."""
    assert c.write(INSERT, index_entry(c, 1)) == ["OK"]
    assert len(c.read_table("index")) == 1
    stranger.Capabilities(p4runtime_pb2.CapabilitiesRequest(), timeout=TIMEOUT_S)
    stranger.GetForwardingPipelineConfig(
        p4runtime_pb2.GetForwardingPipelineConfigRequest(), timeout=TIMEOUT_S
    )
    Controller(c.address, c.p4info, election_id=9).close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("connections", "each"), [(1, 100), (2 * MAX_WAITING, 1), (8, 30)])
def test_calls_that_are_never_ended(
    controller: Controller,
    stranger: p4runtime_pb2_grpc.P4RuntimeStub,
    method: str,
    connections: int,
    each: int,
) -> None:
    attackers = [HalfOpen(controller.address) for _ in range(connections)]
    try:
        for attacker in attackers:
            for number in range(each):
                attacker.begin(method, b"\0\0\0\x80\0half" if number % 2 else b"")
        # The server has seen the last of them: on one connection it gives up the surplus.
        if connections == 1:
            assert attackers[0].is_ended()
        is_served(controller, stranger)
    finally:
        for attacker in attackers:
            attacker.close()


@pytest.mark.parametrize("method", ["Capabilities", "GetForwardingPipelineConfig"])
def test_answers_that_nobody_takes(
    controller: Controller, stranger: p4runtime_pb2_grpc.P4RuntimeStub, method: str
) -> None:
    """Ten connections kept all threads for a minute: the primary waited."""
    attackers = [HalfOpen(controller.address, window=0) for _ in range(10)]
    try:
        for attacker in attackers:
            for _ in range(MAX_WAITING):
                attacker.call(method)
        began_s = time.monotonic()
        is_served(controller, stranger)
        assert time.monotonic() - began_s < 30
    finally:
        for attacker in attackers:
            attacker.close()


def test_many_calls_at_once_are_all_answered(stranger: p4runtime_pb2_grpc.P4RuntimeStub) -> None:
    """The server refused 60 of 200 calls while it was clearing away earlier ones."""
    request = p4runtime_pb2.CapabilitiesRequest()
    begun = [stranger.Capabilities.future(request, timeout=TIMEOUT_S) for _ in range(300)]
    assert [call.exception() for call in begun] == [None] * 300


def test_calls_that_are_cancelled_at_once(
    controller: Controller, stranger: p4runtime_pb2_grpc.P4RuntimeStub
) -> None:
    attackers = [HalfOpen(controller.address) for _ in range(8)]
    try:
        for _ in range(200):
            for attacker in attackers:
                attacker.begin_and_cancel("Write", 10)
        is_served(controller, stranger)
    finally:
        for attacker in attackers:
            attacker.close()


def test_connections_that_say_nothing(
    controller: Controller, stranger: p4runtime_pb2_grpc.P4RuntimeStub
) -> None:
    host, port = controller.address.rsplit(":", 1)
    with contextlib.ExitStack() as silent:
        for _ in range(300):
            silent.enter_context(socket.create_connection((host, int(port)), TIMEOUT_S))
        is_served(controller, stranger)


@pytest.mark.parametrize("method", METHODS)
def test_a_call_whose_request_does_not_come_is_given_up(
    switch: RunningSwitch, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(calls, "REQUEST_TIMEOUT_S", 0.1)
    attacker = HalfOpen(switch.address)
    attacker.begin(method, b"\0\0\0\x80\0half")
    assert attacker.is_ended()
    attacker.close()


def test_a_stream_message_that_no_controller_sends_ends_the_stream(
    stranger: p4runtime_pb2_grpc.P4RuntimeStub,
) -> None:
    """Each was answered by an error that repeated it, and waited for the client in memory."""
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.metadata.add(metadata_id=1, value=bytes(handlers.MAX_STREAM_MESSAGE_BYTES))
    stream = stranger.StreamChannel(itertools.repeat(request, 3), timeout=TIMEOUT_S)
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_an_error_repeats_little_of_a_stream_message(stranger: p4runtime_pb2_grpc.P4RuntimeStub) -> None:
    def requests() -> Iterator[p4runtime_pb2.StreamMessageRequest]:
        for size in (10, 100_000):
            request = p4runtime_pb2.StreamMessageRequest()
            request.packet.metadata.add(metadata_id=1, value=bytes(size))
            yield request

    errors = [message.error for message in stranger.StreamChannel(requests(), timeout=TIMEOUT_S)]
    assert [len(error.packet_out.packet_out.metadata) for error in errors] == [1, 0]


def test_requests_that_are_no_messages(switch: RunningSwitch) -> None:
    with grpc.insecure_channel(switch.address) as channel:
        for method in METHODS:
            call = channel.stream_stream(
                f"/p4.v1.P4Runtime/{method}", request_serializer=None, response_deserializer=None
            )
            with pytest.raises(grpc.RpcError) as caught:
                list(call(iter([b"\xff\xff\xff"]), timeout=TIMEOUT_S))
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            with contextlib.suppress(grpc.RpcError):  # a stream ends, a call has nothing to answer
                assert list(call(iter([]), timeout=TIMEOUT_S)) == []


def test_calls_of_a_connection_that_no_primary_uses_are_few() -> None:
    server = Calls()
    with contextlib.ExitStack() as held:
        for _ in range(MAX_RUNNING_OF_PEER):
            held.enter_context(server.running("ipv4:1", is_primary=False))
        with pytest.raises(DataPlaneError, match="of this connection"):
            held.enter_context(server.running("ipv4:1", is_primary=False))
        for _ in range(MAX_RUNNING):
            held.enter_context(server.running("ipv4:2", is_primary=True))
        with pytest.raises(DataPlaneError, match="try again"):
            held.enter_context(server.running("ipv4:2", is_primary=True))
        held.enter_context(server.running("ipv4:3", is_primary=False))
    with server.running("ipv4:1", is_primary=False):
        pass
    server.close()


class SlowCalls:
    """BMv2's calls, one at a time: a stranger's reads all entries of a table."""

    def __init__(self) -> None:
        self._one_call = threading.Lock()
        self.slow = 0

    def statistics(self) -> object:
        return {}

    def limit_queues(self, limits: Mapping[str, int], port: int | None, priority: int | None) -> None: ...

    def call(self, data: bytes) -> bytes:
        with self._one_call:
            if data == b"slow":
                self.slow += 1
                time.sleep(0.1)
        return data

    def only_reads(self, data: bytes) -> bool:
        return data == b"slow"


def own_call(channel: grpc.Channel, data: bytes) -> Any:
    request = p4runtime_pb2.WriteRequest(device_id=0)
    request.election_id.low = 1
    request.updates.add().entity.extern_entry.entry.value = data
    method: Any = channel.unary_unary(
        f"/{handlers.OWN_SERVICE}/Call", request_serializer=None, response_deserializer=None
    )
    return method.future(request.SerializeToString(), timeout=TIMEOUT_S)


def test_a_primary_s_own_calls_wait_for_no_queue_of_strangers() -> None:
    """It waited for all that had come before, 10 s with 20,000 entries and eight connections."""
    own = SlowCalls()
    server = P4RuntimeServer("127.0.0.1:0", 0, EmbeddedEngine({}, CPU_PORT))
    server.serve_own_calls(own)
    server.start()
    options = [("grpc.use_local_subchannel_pool", 1)]
    requests: queue.Queue[Any] = queue.Queue()
    with contextlib.ExitStack() as opened:
        opened.callback(server.stop)
        opened.callback(requests.put, None)
        channels = [grpc.insecure_channel(f"127.0.0.1:{server.port}", options=options) for _ in range(5)]
        primary, *strangers = [opened.enter_context(channel) for channel in channels]
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.election_id.low = 1
        requests.put(request)
        stream = p4runtime_pb2_grpc.P4RuntimeStub(primary).StreamChannel(iter(requests.get, None))
        assert next(stream).HasField("arbitration")
        reads = [own_call(channel, b"slow") for channel in strangers for _ in range(MAX_RUNNING_OF_PEER)]
        reads[0].result()
        before = own.slow
        assert own_call(primary, b"quick").result() == b"quick"
        assert own.slow <= before + 2
        for read in reads:
            read.result()


class Context:
    """The part of a gRPC context that a call needs while it waits for its request."""

    def __init__(self, peer: str) -> None:
        self._peer, self.is_cancelled = peer, False

    def peer(self) -> str:
        return self._peer

    def cancel(self) -> None:
        self.is_cancelled = True


def test_calls_that_wait_for_their_request_are_few_and_cost_no_primary_its_own() -> None:
    """Each may hold a message but for its last byte: 32 of 16 MiB took 330 MB."""
    assert MAX_WAITING * handlers.MAX_MESSAGE_BYTES <= 192 << 20
    server = Calls()
    contexts = [Context(f"ipv4:{number % 3}") for number in range(MAX_WAITING)]
    primary, newcomer = Context("ipv4:primary"), Context("ipv4:newcomer")
    with contextlib.ExitStack() as waiting:
        for context in contexts:
            waiting.enter_context(server.for_request(cast("Any", context), is_primary=False))
        for _ in range(MAX_WAITING):
            waiting.enter_context(server.for_request(cast("Any", primary), is_primary=True))
        assert not any(context.is_cancelled for context in contexts)
        waiting.enter_context(server.for_request(cast("Any", newcomer), is_primary=False))
        assert [context.is_cancelled for context in contexts] == [True] + [False] * (MAX_WAITING - 1)
        assert [one.is_cancelled for one in (primary, newcomer)] == [False, False]
    server.close()


def test_a_long_read_lets_others_have_their_turn(
    embedded_artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wildcard was read whole: whoever wrote waited for seconds. What is deleted meanwhile is left out."""
    monkeypatch.setattr(pieces, "PIECE_S", TIMEOUT_S)
    data_plane = EmbeddedEngine({}, CPU_PORT).load(embedded_artifacts.device_config)
    pipeline = Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=embedded_artifacts.p4info), data_plane)
    entries = [
        TableEntry("FlowIngress.index", (KeyMatch(key),), ActionCall("FlowIngress.set_slot", (1, 2)))
        for key in range(4 * ENTITIES_AT_ONCE)
    ]
    for entry in entries:
        data_plane.insert(entry)
    turns = 0

    def turn() -> contextlib.AbstractContextManager[None]:
        nonlocal turns
        turns += 1
        if turns == 2:  # some entries are in the answer by now
            for entry in entries:
                data_plane.delete(entry)
        return nullcontext()

    for wildcard in ("table_entry", "direct_counter_entry"):
        for entry in entries:
            with contextlib.suppress(DataPlaneError):
                data_plane.insert(entry)
        turns, entity = 0, p4runtime_pb2.Entity()
        getattr(entity, wildcard).SetInParent()
        entity.table_entry.counter_data.SetInParent() if wildcard == "table_entry" else None
        read = sum(len(response.entities) for response in pipeline.read([entity], turn))
        assert 0 < read < len(entries)
        assert turns == 2


def test_counters_are_read_in_pieces(embedded_artifacts: Artifacts) -> None:
    data_plane = EmbeddedEngine({}, CPU_PORT).load(embedded_artifacts.device_config)
    name = "FlowIngress.kinds"
    data_plane.set_counter(name, 15, CounterValue(7, 8))
    assert data_plane.counters(name, 14, 2) == [CounterValue(0, 0), CounterValue(7, 8)]
    assert len(data_plane.counters(name)) == 16
    for first, count in ((15, 2), (-1, 1), (17, 0)):
        with pytest.raises(DataPlaneError, match="has 16 elements"):
            data_plane.counters(name, first, count)
