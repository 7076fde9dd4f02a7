"""Requests that are small to send and large to parse, do or answer keep nobody from his work for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import grpc
import pytest

from tests.v1model.p4runtime.controller import INSERT, MODIFY, Controller
from tests.v1model.p4runtime.engines import RunningSwitch
from v1model.binding import replication
from v1model.p4runtime import pipeline as pieces
from v1model.p4runtime import rollback, service
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.entity import MAX_METADATA_BYTES, Answer
from v1model.p4runtime.handlers import MAX_PARSED_AT_ONCE_BYTES, MAX_READ_BYTES
from v1model.p4runtime.pipeline import Pipeline
from v1model.protos.p4.v1 import p4runtime_pb2

TIMEOUT_S = 60.0
NO_MESSAGE = b"\x22\xff"
"""Ends in the middle of a field."""


@pytest.fixture
def stranger(switch: RunningSwitch) -> Iterator[grpc.Channel]:
    """A connection of its own, of somebody who takes part in no election."""
    with grpc.insecure_channel(switch.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel


def call(channel: grpc.Channel, method: str, requests: Sequence[bytes]) -> Any:
    caller = channel.stream_stream(
        f"/p4.v1.P4Runtime/{method}", request_serializer=None, response_deserializer=None
    )
    return caller(iter(requests), timeout=TIMEOUT_S)


@pytest.mark.parametrize("method", ["Write", "SetForwardingPipelineConfig"])
def test_what_only_a_primary_may_send_is_not_parsed_for_others(
    controller: Controller, stranger: grpc.Channel, method: str
) -> None:
    """16 MiB of empty updates took 2 s, in which nobody else was served, and 320 MB."""
    head = p4runtime_pb2.WriteRequest()
    head.election_id.low = 7
    request = head.SerializeToString() + bytes((0x2A, 0)) * MAX_PARSED_AT_ONCE_BYTES
    outcome = call(stranger, method, [request])
    assert outcome.code() == grpc.StatusCode.PERMISSION_DENIED
    assert call(stranger, method, [request + NO_MESSAGE]).code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("method", ["Read", "GetForwardingPipelineConfig", "Capabilities"])
def test_what_everybody_may_send_is_short(
    controller: Controller, stranger: grpc.Channel, method: str
) -> None:
    outcome = call(stranger, method, [bytes((0x12, 0)) * (MAX_READ_BYTES // 2 + 1)])
    assert outcome.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("method", ["Read", "StreamChannel"])
def test_large_messages_are_parsed_one_at_a_time(
    controller: Controller, switch: RunningSwitch, stranger: grpc.Channel, method: str
) -> None:
    assert switch.server is not None
    turns = switch.server.service._turns
    with turns.turn("another", is_primary=False):
        outcome = call(stranger, method, [bytes(MAX_PARSED_AT_ONCE_BYTES) + NO_MESSAGE])
        while not turns._waiting:
            assert not outcome.done()
            time.sleep(0.001)
    assert outcome.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_those_who_are_no_primaries_share_the_time_for_their_stream_messages(
    controller: Controller, switch: RunningSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "REFUSAL_PAUSE_S", 0.02)
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = b"x"
    channels = [
        grpc.insecure_channel(switch.address, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(4)
    ]
    began_s = time.monotonic()
    streams = [call(channel, "StreamChannel", [request.SerializeToString()] * 5) for channel in channels]
    assert [len(list(stream)) for stream in streams] == [5] * 4
    assert time.monotonic() - began_s >= 4 * 5 * 0.02
    for channel in channels:
        channel.close()


def register(pipeline: Pipeline, index: int | None = None) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    entity.register_entry.register_id = pipeline.config.p4info.registers[0].preamble.id
    entity.register_entry.data.bitstring = b"\1"
    if index is not None:
        entity.register_entry.index.index = index
    return entity


def test_updates_that_take_long_are_written_one_at_a_time(
    pipelines: tuple[Pipeline, Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 wildcards of a register of 262,144 elements held the server for a minute."""
    monkeypatch.setattr(pieces, "PIECE_S", 0.0)
    request = p4runtime_pb2.WriteRequest()
    for _ in range(5):
        request.updates.add(type=MODIFY, entity=register(pipelines[0]))
    batch = Batch(request)
    for done in range(1, 6):
        pipelines[0].write_batch(batch, 256)
        assert batch.results == [None] * done
    assert batch.is_done()


def test_entities_that_take_long_are_read_one_at_a_time(
    pipelines: tuple[Pipeline, Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE_S", 0.0)
    turns = 0

    def turn() -> AbstractContextManager[None]:
        nonlocal turns
        turns += 1
        return nullcontext()

    (response,) = pipelines[0].read([register(pipelines[0])], turn)
    assert turns == len(response.entities) + 1


def test_a_batch_that_takes_long_to_write_atomically_is_undone(
    pipelines: tuple[Pipeline, Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,096 wildcards of a register stopped all packets for minutes, and kept what had been there."""
    monkeypatch.setattr(rollback, "MAX_CPU_S", -1.0)
    update = p4runtime_pb2.Update(type=MODIFY, entity=register(pipelines[0]))
    errors = pipelines[0].write_atomically([update, update], pauses_packets=True)
    assert [error.code for error in errors if error] == ["RESOURCE_EXHAUSTED", "ABORTED"]


def test_a_response_is_short_also_where_its_entities_are_long() -> None:
    answer = Answer()
    for _ in range(5):
        answer.add().table_entry.metadata = bytes(Answer.BYTES // 2)
    assert [len(response.entities) for response in answer.take_full()] == [2, 2]
    assert len(answer.take_rest().entities) == 1


def test_metadata_is_bounded(controller: Controller) -> None:
    """The server keeps it, beside the data plane."""
    c = controller
    action = c.action("set_slot", base=1, generation=2)
    for size, code in ((MAX_METADATA_BYTES, "OK"), (MAX_METADATA_BYTES + 1, "RESOURCE_EXHAUSTED")):
        entry = c.entry("index", {"headers.flow.key": size}, action, metadata=bytes(size))
        assert c.write(INSERT, entry) == [code]
        group = c.entity("packet_replication_engine_entry")
        message = group.packet_replication_engine_entry.multicast_group_entry
        message.multicast_group_id, message.metadata = size, bytes(size)
        assert c.write(INSERT, group) == [code]


def group_of(c: Controller, group_id: int, replicas: int) -> p4runtime_pb2.Entity:
    group = c.entity("packet_replication_engine_entry")
    message = group.packet_replication_engine_entry.multicast_group_entry
    message.multicast_group_id = group_id
    for instance in range(replicas):
        message.replicas.add(egress_port=1, instance=instance)
    return group


def test_replicas_are_bounded(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    """One packet becomes as many."""
    c = controller
    monkeypatch.setattr(replication, "MAX_REPLICAS", 8)
    monkeypatch.setattr(replication, "MAX_ALL_REPLICAS", 20)
    groups = [group_of(c, number, 8) for number in (1, 2, 3)]
    assert c.write(INSERT, *groups) == ["OK", "OK", "RESOURCE_EXHAUSTED"]
    assert c.write(INSERT, group_of(c, 4, 9)) == ["RESOURCE_EXHAUSTED"]
    assert c.write(MODIFY, group_of(c, 1, 4)) == ["OK"]
    assert c.write(INSERT, groups[2]) == ["OK"]
    assert c.write(MODIFY, group_of(c, 1, 5)) == ["RESOURCE_EXHAUSTED"]


def test_streams_with_a_role_are_asked_to_wait_before_the_next_election(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each election is told to all controllers of the role."""
    paused = threading.Event()
    monkeypatch.setattr(service.P4RuntimeService, "_pause", lambda self: paused.set())
    request = p4runtime_pb2.StreamMessageRequest()
    request.arbitration.election_id.low = 2
    controller.client.stream_out_q.put(request)
    assert controller.receive("arbitration").election_id.low == 2
    assert paused.is_set()
