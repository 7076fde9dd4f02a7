"""What goes over the stream besides arbitration: packets, digests, idle timeouts, errors."""

from __future__ import annotations

import struct

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.controller import Controller
from tests.v1model.p4runtime.engines import CPU_PORT
from tests.v1model.p4runtime.test_entities import digest
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

ADDRESS = "headers.flow.address"
LEARN, TO_CPU = 1, 2


def flow(operation: int, address: int = 0, kind: int = 0) -> bytes:
    return struct.pack(">BHI16x", operation, kind, address) + b"payload"


@BOTH
def test_a_packet_out_comes_back_as_packet_in(controller: Controller) -> None:
    controller.send_packet(flow(0), egress_port=CPU_PORT)
    packet = controller.receive("packet")
    assert packet.payload == flow(0)
    metadata = {item.metadata_id: item.value for item in packet.metadata}
    assert metadata == {1: CPU_PORT.to_bytes(2, "big"), 2: b"\0"}


@BOTH
def test_packets_keep_their_order(controller: Controller) -> None:
    sent = [flow(TO_CPU, address=number) for number in range(50)]
    for payload in sent:
        controller.send_packet(payload)
    assert [controller.receive("packet").payload for _ in sent] == sent


def test_packet_outs_that_do_not_match_the_p4info(controller: Controller) -> None:
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = flow(TO_CPU)
    controller.client.stream_out_q.put(request)
    error = controller.receive("error")
    assert error.canonical_code == code_pb2.INVALID_ARGUMENT
    assert error.HasField("packet_out")
    request.packet.metadata.add(metadata_id=1, value=b"\xff\xff")
    request.packet.metadata.add(metadata_id=2, value=b"\0")
    controller.client.stream_out_q.put(request)
    assert controller.receive("error").canonical_code == code_pb2.OUT_OF_RANGE


@BOTH
def test_digests(controller: Controller) -> None:
    c = controller
    c.insert(digest(c, 10**9, 1, 10**11))
    c.send_packet(flow(LEARN, address=0x0A000001))
    message = c.receive("digest")
    assert message.digest_id == c.id("digests", "learned_t")
    (data,) = message.data
    members = [member.bitstring for member in data.struct.members]
    assert members == [b"\x0a\0\0\1", CPU_PORT.to_bytes(2, "big"), b"\1"]
    # Until the list is acknowledged, the same sample is not sent again, but others are.
    c.send_packet(flow(LEARN, address=0x0A000001))
    c.send_packet(flow(LEARN, address=0x0A000002))
    second = c.receive("digest")
    assert second.data[0].struct.members[0].bitstring == b"\x0a\0\0\2"
    again = c.learned_again(message, flow(LEARN, address=0x0A000001))
    assert again.data[0].struct.members[0].bitstring == b"\x0a\0\0\1"


def test_lists_of_digests(controller: Controller) -> None:
    c = controller
    c.insert(digest(c, 0, 3, 10**11))
    for address in (1, 2, 2, 3):  # until it is acknowledged, a sample is sent once
        c.send_packet(flow(LEARN, address=address))
    message = c.receive("digest")
    assert [data.struct.members[0].bitstring for data in message.data] == [b"\1", b"\2", b"\3"]


def test_an_unknown_digest_can_not_be_acknowledged(controller: Controller) -> None:
    ack = p4runtime_pb2.StreamMessageRequest()
    ack.digest_ack.digest_id = 99
    controller.client.stream_out_q.put(ack)
    error = controller.receive("error")
    assert error.canonical_code == code_pb2.INVALID_ARGUMENT
    assert error.HasField("digest_list_ack")


def test_idle_entries_are_reported_and_kept(controller: Controller) -> None:
    c = controller
    entry = c.entry("aging", {ADDRESS: 9}, c.action("color"), idle_timeout_ns=50_000_000, metadata=b"mine")
    c.insert(entry)
    message = c.receive("idle_timeout_notification")
    (idle,) = message.table_entry
    assert (idle.table_id, idle.match[0].exact.value) == (c.id("tables", "aging"), b"\x09")
    assert (idle.metadata, idle.idle_timeout_ns) == (b"mine", 50_000_000)
    assert message.timestamp > 0
    assert c.read_table("aging") == [entry]


def test_events_go_to_the_primary_of_each_role_only(controller: Controller) -> None:
    c = controller
    backup = Controller(c.address, c.p4info, election_id=0)
    other_role = Controller(c.address, c.p4info, role="telemetry")
    try:
        c.send_packet(flow(TO_CPU, address=7))
        assert c.receive("packet").payload == other_role.receive("packet").payload
        backup.send_packet(flow(TO_CPU))
        assert backup.receive("error").canonical_code == code_pb2.PERMISSION_DENIED
        assert backup.client.stream_in_q["packet"].empty()
    finally:
        backup.close()
        other_role.close()
