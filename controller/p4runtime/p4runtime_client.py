"""One P4Runtime session, for a process that has to go on when a switch does not: every call has a
deadline, every failure is one of `controller.errors`, and the errors of a write come one for each update.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.experimental

from controller.errors import ConnectionLostError, NotPrimaryError, SwitchError
from controller.p4runtime.channel import open_channel
from controller.p4runtime.counting_channel import CountingChannel
from v1model.protos.google.rpc import code_pb2, status_pb2
from v1model.protos.p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from controller.config import ClientTls
    from controller.costs import Costs

RPC_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 30.0
"""Seconds for reading everything; parsing takes most of it."""
HANDSHAKE_TIMEOUT_S: Final = 2.0
PIPELINE_TIMEOUT_S: Final = 120.0
"""An engine may compile the program when it gets it."""
UPDATES_PER_WRITE: Final = 256

_CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 64 << 20),
    # The errors of a write come as trailing metadata, one for each update.
    ("grpc.max_metadata_size", 1 << 20),
    ("grpc.absolute_max_metadata_size", 1 << 20),
    # No pings that measure how much is on its way: messages are few and small, and a ping wakes both ends.
    ("grpc.http2.bdp_probe", 0),
    # Who reads takes what comes; otherwise a thread is started for each Read.
    (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
    # Otherwise a new channel to the same address inherits the old one's growing back-off.
    ("grpc.use_local_subchannel_pool", 1),
    # How long a connection that never answers keeps its socket after the session was given up; else 20 s.
    ("grpc.min_reconnect_backoff_ms", int(1000 * HANDSHAKE_TIMEOUT_S)),
)
_UNREACHABLE: Final = {
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED,
    grpc.StatusCode.FAILED_PRECONDITION,  # it has no pipeline any more
}  # fmt: skip


class SwitchClient:
    """One session; construction raises ConnectionLostError. The callbacks run in the stream's thread."""

    def __init__(
        self,
        device_id: int,
        address: str,
        election_id: tuple[int, int],
        on_message: Callable[[Any], None],
        on_change: Callable[[], None],
        costs: Costs,
        tls: ClientTls | None = None,
    ) -> None:
        self.device_id, self.election_id = device_id, election_id
        self.primary = False
        self.ended = threading.Event()
        """The stream is over, for whatever reason."""
        self._address, self._costs = address, costs
        self._on_message, self._on_change = on_message, on_change
        self._answered = threading.Event()
        channel = open_channel(address, tls, _CHANNEL_OPTIONS)
        self._channel = CountingChannel(channel, costs)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4runtime_pb2.StreamMessageRequest | None] = queue.Queue()
        self.stream = self.stub.StreamChannel(iter(self._requests.get, None))
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()
        try:
            self._take_part()
        except ConnectionLostError:
            self.tear_down()
            raise

    def tear_down(self) -> None:
        """End the session, also with a server that does not answer."""
        self.stream.cancel()
        self._requests.put(None)
        self._receiver.join()
        self._channel.close()

    def send(self, request: p4runtime_pb2.StreamMessageRequest) -> None:
        """Put a message on the stream."""
        self._requests.put(request)

    def write_updates(self, updates: Sequence[Any]) -> list[int]:
        """Write in batches; each update's canonical code, 0 for success."""
        codes: list[int] = []
        for start in range(0, len(updates), UPDATES_PER_WRITE):
            codes += self._write(updates[start : start + UPDATES_PER_WRITE])
        return codes

    def read(self, entities: Iterable[Any]) -> Iterator[Any]:
        """Yield the entities that match; nothing is buffered."""
        return self.read_all(p4runtime_pb2.ReadRequest(entities=entities))

    def read_all(self, request: p4runtime_pb2.ReadRequest) -> Iterator[Any]:
        """Yield what a request reads, as `read` does, of a request that names no device yet."""
        self._costs.p4runtime_reads += 1
        request.device_id = self.device_id
        try:
            for response in self.stub.Read(request, timeout=READ_TIMEOUT_S):
                self._costs.entities_read += len(response.entities)
                yield from response.entities
        except grpc.RpcError as error:
            raise self._translated(error) from None

    def pipeline(self) -> Any | None:
        """Return the switch's pipeline configuration (P4Info and cookie), None if it has none."""
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.response_type = request.P4INFO_AND_COOKIE
        try:
            return self.stub.GetForwardingPipelineConfig(request, timeout=RPC_TIMEOUT_S).config
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
                return None
            raise self._translated(error) from None

    def set_pipeline(self, p4info: Any, device_config: bytes, cookie: int) -> None:
        """Install a program; the switch then has no entries."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.election_id.high, request.election_id.low = self.election_id
        request.action = request.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(p4info)
        request.config.p4_device_config = device_config
        request.config.cookie.cookie = cookie
        try:
            self.stub.SetForwardingPipelineConfig(request, timeout=PIPELINE_TIMEOUT_S)
        except grpc.RpcError as error:
            raise self._translated(error) from None

    def _take_part(self) -> None:
        """Take part in the arbitration; `primary` is then known."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.high, request.arbitration.election_id.low = self.election_id
        self.send(request)
        if not self._answered.wait(HANDSHAKE_TIMEOUT_S) or self.ended.is_set():
            raise ConnectionLostError(
                f"{self._address}: no P4Runtime server answers for device {self.device_id}"
            )

    def _write(self, updates: Sequence[Any]) -> list[int]:
        self._costs.p4runtime_writes += 1
        self._costs.p4runtime_updates += len(updates)
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id, updates=updates)
        request.election_id.high, request.election_id.low = self.election_id
        try:
            self.stub.Write(request, timeout=RPC_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNKNOWN:
                raise self._translated(error) from None
            codes = _update_codes(error, len(updates))
            self._costs.p4runtime_update_errors += sum(code != code_pb2.OK for code in codes)
            return codes
        return [code_pb2.OK] * len(updates)

    def _receive(self) -> None:
        try:
            for message in self.stream:
                if message.HasField("arbitration"):
                    self.primary = message.arbitration.status.code == code_pb2.OK
                    self._answered.set()
                    self._on_change()
                else:
                    self._on_message(message)
        except grpc.RpcError:
            pass  # whatever ended the stream, the session is over; the next one will tell why
        finally:
            self.ended.set()
            self._answered.set()
            self._on_change()

    def _translated(self, error: Any) -> SwitchError:
        text = f"{self._address}: {error.code().name}: {error.details()}"
        if error.code() in _UNREACHABLE:
            return ConnectionLostError(text)
        if error.code() == grpc.StatusCode.PERMISSION_DENIED:
            return NotPrimaryError(text)
        return SwitchError(text)


def _update_codes(error: Any, updates: int) -> list[int]:
    """Return the code of each update, UNKNOWN without details (P4Runtime, "Error Reporting Messages")."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    status = status_pb2.Status()
    status.ParseFromString(details)
    codes: list[int] = [code_pb2.UNKNOWN] * updates
    for index, detail in enumerate(status.details[:updates]):
        p4_error = p4runtime_pb2.Error()
        if detail.Unpack(p4_error):
            codes[index] = p4_error.canonical_code
    return codes
