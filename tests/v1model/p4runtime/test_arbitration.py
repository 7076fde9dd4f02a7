"""Primary and backups over real streams."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.engines import RunningSwitch
from v1model.protos.google.rpc import code_pb2
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

TIMEOUT_S = 60.0
OK, ALREADY_EXISTS, NOT_FOUND = code_pb2.OK, code_pb2.ALREADY_EXISTS, code_pb2.NOT_FOUND


class Stream:
    """One StreamChannel whose messages a test sends and takes one by one."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self._requests: queue.Queue[Any] = queue.Queue()
        self._responses: queue.Queue[Any] = queue.Queue()
        self._call = self.stub.StreamChannel(iter(self._requests.get, None))
        threading.Thread(target=self._receive, daemon=True).start()

    def arbitrate(self, election_id: int | None, device_id: int = 0, role: str = "", **config: Any) -> None:
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = device_id
        if role:
            request.arbitration.role.name = role
        if config:
            request.arbitration.role.config.SetInParent()
        if election_id is not None:
            request.arbitration.election_id.SetInParent()
            request.arbitration.election_id.low = election_id
        self._requests.put(request)

    def send(self, request: p4runtime_pb2.StreamMessageRequest) -> None:
        self._requests.put(request)

    def take(self) -> Any:
        """The next message, or the code with which the stream ended."""
        return self._responses.get(timeout=TIMEOUT_S)

    def standing(self) -> tuple[int, int]:
        """(status code, election id) of the next message, which must be an arbitration."""
        arbitration = self.take().arbitration
        return arbitration.status.code, arbitration.election_id.low

    def write_code(self, election_id: int, device_id: int = 0, role: str = "") -> str:
        request = p4runtime_pb2.WriteRequest(device_id=device_id, role=role)
        request.election_id.low = election_id
        try:
            self.stub.Write(request)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def close(self) -> None:
        self._requests.put(None)
        self._call.cancel()
        self.channel.close()

    def _receive(self) -> None:
        try:
            for response in self._call:
                self._responses.put(response)
        except grpc.RpcError as error:
            self._responses.put(error.code().name)


@contextmanager
def streams(switch: RunningSwitch, count: int) -> Iterator[list[Stream]]:
    opened = [Stream(switch.address) for _ in range(count)]
    try:
        yield opened
    finally:
        for stream in opened:
            stream.close()


@BOTH
def test_the_highest_election_id_is_primary(switch: RunningSwitch) -> None:
    with streams(switch, 3) as (a, b, c):
        a.arbitrate(5)
        assert a.standing() == (OK, 5)
        b.arbitrate(3)
        assert b.standing() == (ALREADY_EXISTS, 5)
        c.arbitrate(9)
        assert c.standing() == (OK, 9)
        assert a.standing() == b.standing() == (ALREADY_EXISTS, 9)


@BOTH
def test_only_the_primary_may_write(switch: RunningSwitch) -> None:
    with streams(switch, 2) as (a, b):
        a.arbitrate(5)
        assert a.standing() == (OK, 5)
        b.arbitrate(3)
        assert b.standing() == (ALREADY_EXISTS, 5)
        assert a.write_code(5) == "FAILED_PRECONDITION"  # no pipeline yet
        assert b.write_code(3) == "PERMISSION_DENIED"
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(action="VERIFY")
        with pytest.raises(grpc.RpcError) as caught:
            b.stub.SetForwardingPipelineConfig(request)
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_nobody_is_promoted_when_the_primary_leaves(switch: RunningSwitch) -> None:
    with streams(switch, 2) as (a, b):
        a.arbitrate(5)
        a.standing()
        b.arbitrate(3)
        b.standing()
        a.close()
        assert b.standing() == (NOT_FOUND, 5)
        assert b.write_code(3) == "PERMISSION_DENIED"
        b.arbitrate(4)
        assert b.standing() == (NOT_FOUND, 5)
        b.arbitrate(5)
        assert b.standing() == (OK, 5)


def test_a_primary_can_step_down(switch: RunningSwitch) -> None:
    with streams(switch, 2) as (a, b):
        a.arbitrate(5)
        a.standing()
        b.arbitrate(3)
        b.standing()
        a.arbitrate(2)
        assert a.standing() == b.standing() == (NOT_FOUND, 5)


def test_without_an_election_id_one_is_always_backup(switch: RunningSwitch) -> None:
    with streams(switch, 2) as (a, b):
        a.arbitrate(None)
        message = a.take().arbitration
        assert message.status.code == NOT_FOUND
        assert not message.HasField("election_id")
        b.arbitrate(0)
        assert b.standing() == (OK, 0)
        assert a.standing() == (ALREADY_EXISTS, 0)


@BOTH
def test_an_election_id_can_not_be_shared(switch: RunningSwitch) -> None:
    with streams(switch, 2) as (a, b):
        a.arbitrate(5)
        a.standing()
        b.arbitrate(5)
        assert b.take() == "INVALID_ARGUMENT"


@BOTH
def test_the_next_controller_need_not_count_upwards(switch: RunningSwitch) -> None:
    with streams(switch, 1) as (a,):
        a.arbitrate(100)
        assert a.standing() == (OK, 100)
    # The server hears of the end of a stream when it hears of it: ask until it has.
    for _ in range(100):
        with streams(switch, 1) as (b,):
            b.arbitrate(1)
            if b.standing() == (OK, 1):
                return
    pytest.fail("the controller that left still counts")


def test_unknown_devices_and_changed_identities(switch: RunningSwitch) -> None:
    with streams(switch, 3) as (a, b, c):
        a.arbitrate(1, device_id=7)
        assert a.take() == "NOT_FOUND"
        b.arbitrate(1)
        assert b.standing() == (OK, 1)
        assert b.write_code(1, device_id=7) == "NOT_FOUND"
        b.arbitrate(1, device_id=7)
        assert b.take() == "FAILED_PRECONDITION"
        c.arbitrate(2)
        c.standing()
        c.arbitrate(2, role="other")
        assert c.take() == "FAILED_PRECONDITION"


def test_no_scheme_of_role_configs_is_agreed_upon(switch: RunningSwitch) -> None:
    """The specification's answer to a config that does not match the scheme; the role does not come to be."""
    with streams(switch, 2) as (a, b):
        a.arbitrate(1, role="other", config=True)
        assert a.take() == "INVALID_ARGUMENT"
        assert a.write_code(1, role="other") == "NOT_FOUND"
        b.arbitrate(1, role="other")
        assert b.standing() == (OK, 1)


def test_each_role_has_its_primary(switch: RunningSwitch) -> None:
    with streams(switch, 2) as (a, b):
        a.arbitrate(5)
        b.arbitrate(1, role="telemetry")
        assert a.standing() == (OK, 5)
        message = b.take().arbitration
        assert (message.status.code, message.role.name) == (OK, "telemetry")
        assert b.write_code(1, role="telemetry") == "FAILED_PRECONDITION"
        assert b.write_code(5, role="telemetry") == "PERMISSION_DENIED"
        assert b.write_code(1, role="nobody") == "NOT_FOUND"


def test_backups_can_not_send_packets(switch: RunningSwitch) -> None:
    with streams(switch, 1) as (a,):
        request = p4runtime_pb2.StreamMessageRequest()
        request.packet.payload = b"x"
        a.send(request)
        error = a.take().error
        assert error.canonical_code == code_pb2.PERMISSION_DENIED
        assert error.HasField("packet_out")


def test_too_many_controllers(switch: RunningSwitch) -> None:
    with streams(switch, 17) as opened:
        for number, stream in enumerate(opened[:16]):
            stream.arbitrate(100 - number)
            stream.standing()
        opened[16].arbitrate(1)
        assert opened[16].take() == "RESOURCE_EXHAUSTED"


def test_a_role_has_a_short_name(switch: RunningSwitch) -> None:
    """Each message to its controllers has the name: in 4 s, sixteen that took none cost 2.5 GB."""
    with streams(switch, 2) as (a, b):
        a.arbitrate(1, role="r" * 256)
        assert a.standing() == (OK, 1)
        b.arbitrate(1, role="r" * 257)
        assert b.take() == "RESOURCE_EXHAUSTED"
        assert b.write_code(1, role="r" * 4_000_000) == "NOT_FOUND"
