"""P4Runtime service: the checks of each RPC and their order."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import grpc

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.arbitration import Arbitration
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.calls import Calls
from v1model.p4runtime.device import Device
from v1model.p4runtime.session import Session
from v1model.p4runtime.status import grpc_code, stream_error, write_status
from v1model.p4runtime.turns import Turns
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from v1model.p4runtime.device import Engine
    from v1model.p4runtime.pipeline import Pipeline

API_VERSION = "1.4.0"
MAX_STREAMS = 64  # of controllers in arbitration; each holds two threads
MAX_UPDATES = 65_536  # in a Write: some 5 s of work
MAX_ATOMIC_UPDATES = 4_096  # in an atomic Write, which has no pauses: under 1 s
MAX_ENTITIES = 65_536  # in a Read
# Updates that are written without a pause, in at most some 10 ms. Packets for and from the controller, reads,
# other roles' writes and the election of a new primary wait for that time.
UPDATES_AT_ONCE = 256
# Pause between two stream messages of all non-primaries together, and between two elections that streams with
# a role ask for. So clients that send many get slow answers.
REFUSAL_PAUSE_S = 0.01

logger = logging.getLogger(__name__)

PrimaryRequest: TypeAlias = p4runtime_pb2.WriteRequest | p4runtime_pb2.SetForwardingPipelineConfigRequest


class P4RuntimeService:
    """Service of one device, `device_id`, whose programs run on `engine`."""

    def __init__(self, device_id: int, engine: Engine) -> None:
        self.device = Device(device_id, engine, self._tell_primaries)
        self._arbitration = Arbitration(device_id)
        self._sessions: set[Session] = set()
        self._sessions_lock = threading.Lock()
        self.calls = Calls()
        self._turns = Turns()
        self._refusals = threading.Lock()  # held for REFUSAL_PAUSE_S
        # Held for each piece of a Write and while roles change hands, so that none changes within a piece.
        self._write_lock = threading.Lock()

    def close(self) -> bool:
        """End all streams and the device; returns False if it is busy with a new pipeline."""
        self.calls.close()
        with self._sessions_lock:
            for session in self._sessions:
                session.close()
        return self.device.close()

    # --- RPCs

    def Capabilities(
        self, request: p4runtime_pb2.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.CapabilitiesResponse:
        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def SetForwardingPipelineConfig(
        self, request: p4runtime_pb2.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.SetForwardingPipelineConfigResponse:
        def check() -> None:
            self.check_primary(request)
            if not context.is_active():
                raise DataPlaneError("ABORTED", "the client is gone")

        try:
            with self._running(context):
                check()
                config = request.config if request.HasField("config") else None
                self.device.set_config(request.action, config, request.role, check)
        except DataPlaneError as error:
            _abort(context, error)
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(
        self, request: p4runtime_pb2.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
        try:
            self._check_device(request.device_id)
            with self._running(context):
                config = self.device.get_config(request.response_type)
        except DataPlaneError as error:
            _abort(context, error)
        response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
        if config is not None:
            response.config.CopyFrom(config)
        return response

    def Write(
        self, request: p4runtime_pb2.WriteRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.WriteResponse:
        try:
            with self._running(context):
                results = self._write_updates(request, context)
        except DataPlaneError as error:
            _abort(context, error)
        status = write_status(results)
        if status is not None:
            if status.details:
                context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, status.message)
        return p4runtime_pb2.WriteResponse()

    def _write_updates(
        self, request: p4runtime_pb2.WriteRequest, context: grpc.ServicerContext
    ) -> list[DataPlaneError | None]:
        """Write the updates and return their results. A batch whose sender stops being primary ends there."""
        pipeline = self._pipeline_to_write(request)
        if request.atomicity != p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR:
            pauses = request.atomicity == p4runtime_pb2.WriteRequest.DATAPLANE_ATOMIC
            with self.turn(context), self._write_lock:
                self.check_primary(request)
                return pipeline.write_atomically(request.updates, pauses_packets=pauses)
        batch = Batch(request)
        while True:
            try:
                with self.turn(context), self._write_lock:
                    self.check_primary(request)
                    pipeline.write_batch(batch, UPDATES_AT_ONCE)
            except DataPlaneError as error:
                if not batch.results:
                    raise
                batch.results += [error] * (len(batch.updates) - len(batch.results))
            if batch.is_done():
                return batch.results

    def _pipeline_to_write(self, request: p4runtime_pb2.WriteRequest) -> Pipeline:
        self.check_primary(request)
        pipeline = self.device.pipeline
        is_atomic = request.atomicity != p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR
        most = MAX_ATOMIC_UPDATES if is_atomic else MAX_UPDATES
        if len(request.updates) > most:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED",
                f"{len(request.updates)} updates in one request; send at most {most} at a time",
            )
        return pipeline

    def Read(
        self, request: p4runtime_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4runtime_pb2.ReadResponse]:
        try:
            self._check_device(request.device_id)
            if len(request.entities) > MAX_ENTITIES:
                raise DataPlaneError(
                    "RESOURCE_EXHAUSTED",
                    f"{len(request.entities)} entities in one request; read at most {MAX_ENTITIES} at a time",
                )
            with self._running(context):
                for response in self.device.pipeline.read(request.entities, lambda: self.turn(context)):
                    with self.calls.for_response(context):
                        yield response
        except DataPlaneError as error:
            _abort(context, error)

    def StreamChannel(
        self, request_iterator: Iterator[p4runtime_pb2.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
        session = Session(context.peer())
        with self._sessions_lock:
            self._sessions.add(session)
        failures: list[DataPlaneError] = []
        reader = threading.Thread(
            target=self._serve_stream, args=(request_iterator, context, session, failures), daemon=True
        )
        context.add_callback(session.close)
        reader.start()
        try:
            for message in session.messages():
                with self.calls.for_response(context):
                    yield message
        finally:
            self._arbitration.leave(session)
            with self._sessions_lock:
                self._sessions.discard(session)
        if failures:
            _abort(context, failures[0])

    # --- the stream

    def _serve_stream(
        self,
        requests: Iterator[p4runtime_pb2.StreamMessageRequest],
        context: grpc.ServicerContext,
        session: Session,
        failures: list[DataPlaneError],
    ) -> None:
        """Handle a controller's messages until it leaves or breaks the rules of arbitration."""
        try:
            is_primary = self.is_of_primary(context)
            with self.calls.for_request(context, is_primary=is_primary):  # until it has a role
                for request in requests:
                    self._serve_message(session, request)
                    if session.role is not None:
                        break
            for request in requests:
                self._serve_message(session, request)
        except DataPlaneError as error:
            failures.append(error)
        except grpc.RpcError:
            pass  # cancelled: the controller is gone
        except Exception as error:  # grpc raises a bare Exception when a stream breaks
            logger.debug("a controller's stream ended: %s", error)
        finally:
            session.close()

    def _serve_message(self, session: Session, request: p4runtime_pb2.StreamMessageRequest) -> None:
        session.wait_for_room()  # a controller that does not read is not served
        if request.HasField("arbitration"):
            if session.role is not None:
                self._pause()
            with self._write_lock:
                if session.role is None:
                    self._check_streams()
                self._arbitration.update(session, request.arbitration)
        else:
            self._handle_message(session, request)

    def _check_streams(self) -> None:
        with self._sessions_lock:
            controllers = sum(session.role is not None for session in self._sessions)
        if controllers >= MAX_STREAMS:
            raise DataPlaneError("RESOURCE_EXHAUSTED", f"there are {MAX_STREAMS} streams already")

    def _handle_message(self, session: Session, request: p4runtime_pb2.StreamMessageRequest) -> None:
        try:
            if not self._arbitration.is_primary(session):
                self._pause()
                raise DataPlaneError("PERMISSION_DENIED", "Not primary")
            if request.HasField("packet"):
                self.device.committed.packet_out(request.packet)
            elif request.HasField("digest_ack"):
                self.device.committed.acknowledge_digest(request.digest_ack)
            else:
                raise DataPlaneError("UNIMPLEMENTED", "this kind of stream message is not supported")
        except DataPlaneError as error:
            session.send(stream_error(error, request))

    def _pause(self) -> None:
        with self._refusals:
            time.sleep(REFUSAL_PAUSE_S)

    def _tell_primaries(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        for session in self._arbitration.primaries():
            session.send(message)

    # --- order

    def is_of_primary(self, context: grpc.ServicerContext) -> bool:
        """Return whether a call comes by the connection of some role's primary."""
        peer = context.peer()
        return any(session.peer == peer for session in self._arbitration.primaries())

    def turn(self, context: grpc.ServicerContext) -> AbstractContextManager[None]:
        """Hold a turn for a piece of a long request: one at a time, primaries' first."""
        return self._turns.turn(context.peer(), is_primary=self.is_of_primary(context))

    def _running(self, context: grpc.ServicerContext) -> AbstractContextManager[None]:
        return self.calls.running(context.peer(), is_primary=self.is_of_primary(context))

    def as_primary(
        self, request: PrimaryRequest, context: grpc.ServicerContext, do: Callable[[], bytes]
    ) -> bytes:
        """Return the answer of `do`, if the request is a primary's; otherwise the call is aborted."""
        try:
            with self._running(context):
                self.check_primary(request)
                answer = do()
        except DataPlaneError as error:
            _abort(context, error)
        return answer

    def as_reader(
        self, request: PrimaryRequest, context: grpc.ServicerContext, do: Callable[[], bytes]
    ) -> bytes:
        """Return the answer of `do` to any client."""
        try:
            with self._running(context):
                self._check_device(request.device_id)
                answer = do()
        except DataPlaneError as error:
            _abort(context, error)
        return answer

    # --- checks

    def _check_device(self, device_id: int) -> None:
        if device_id != self.device.device_id:
            raise DataPlaneError("NOT_FOUND", f"this is device {self.device.device_id}, not {device_id}")

    def check_primary(self, request: PrimaryRequest) -> None:
        """Raise DataPlaneError unless the request has the device, role and election id of a primary."""
        self._check_device(request.device_id)
        own_id = (
            (request.election_id.high, request.election_id.low) if request.HasField("election_id") else None
        )
        self._arbitration.check_primary(request.role, own_id)


def _abort(context: grpc.ServicerContext, error: DataPlaneError) -> NoReturn:
    context.abort(grpc_code(error), str(error))
    raise AssertionError("abort never returns")
