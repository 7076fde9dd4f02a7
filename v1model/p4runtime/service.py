"""The P4Runtime service: what each RPC checks and in which order."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import grpc

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.arbitration import Arbitration
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.device import Device
from v1model.p4runtime.session import Session
from v1model.p4runtime.status import grpc_code, stream_error, write_status
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.p4runtime.device import Engine
    from v1model.p4runtime.pipeline import Pipeline

API_VERSION = "1.4.0"
MAX_STREAMS = 64  # each keeps a thread of the server and one that reads
MAX_UPDATES = 65_536  # of a Write, some 5 s of work
MAX_ENTITIES = 65_536  # of a Read
# Updates that are written without a pause, at most some 10 ms: so long do packets for and from the
# controller, reads, other roles' writes and the election of a new primary wait.
UPDATES_AT_ONCE = 256

logger = logging.getLogger(__name__)

PrimaryRequest: TypeAlias = p4runtime_pb2.WriteRequest | p4runtime_pb2.SetForwardingPipelineConfigRequest


class P4RuntimeService:
    """One device, `device_id`, whose programs run on `engine`."""

    def __init__(self, device_id: int, engine: Engine) -> None:
        self.device = Device(device_id, engine, self._tell_primaries)
        self._arbitration = Arbitration(device_id)
        self._sessions: set[Session] = set()
        self._sessions_lock = threading.Lock()
        # Held for each piece of a Write and while roles change hands, so that none changes within a piece.
        self._write_lock = threading.Lock()

    def close(self) -> bool:
        """Ends all streams and the device; False if that is busy with a new pipeline."""
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
        try:
            self._check_primary(request)
            config = request.config if request.HasField("config") else None
            self.device.set_config(request.action, config)
        except DataPlaneError as error:
            _abort(context, error)
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(
        self, request: p4runtime_pb2.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
        try:
            self._check_device(request.device_id)
        except DataPlaneError as error:
            _abort(context, error)
        response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
        config = self.device.get_config(request.response_type)
        if config is not None:
            response.config.CopyFrom(config)
        return response

    def Write(
        self, request: p4runtime_pb2.WriteRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.WriteResponse:
        try:
            results = self._write_updates(request)
        except DataPlaneError as error:
            _abort(context, error)
        status = write_status(results)
        if status is not None:
            if status.details:
                context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, status.message)
        return p4runtime_pb2.WriteResponse()

    def _write_updates(self, request: p4runtime_pb2.WriteRequest) -> list[DataPlaneError | None]:
        """What became of each update. A batch that loses its primary half-way ends there."""
        pipeline = self._pipeline_to_write(request)
        batch = Batch(request)
        while True:
            try:
                with self._write_lock:
                    self._check_primary(request)
                    pipeline.write_batch(batch, UPDATES_AT_ONCE)
            except DataPlaneError as error:
                if not batch.results:
                    raise
                batch.results += [error] * (len(batch.updates) - len(batch.results))
            if batch.is_done():
                return batch.results

    def _pipeline_to_write(self, request: p4runtime_pb2.WriteRequest) -> Pipeline:
        self._check_primary(request)
        pipeline = self.device.pipeline
        if request.atomicity != p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR:
            raise DataPlaneError("UNIMPLEMENTED", "the only atomicity is CONTINUE_ON_ERROR")
        if len(request.updates) > MAX_UPDATES:
            raise DataPlaneError(
                "RESOURCE_EXHAUSTED",
                f"{len(request.updates)} updates in one request; send at most {MAX_UPDATES} at a time",
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
            yield from self.device.pipeline.read(request.entities)
        except DataPlaneError as error:
            _abort(context, error)

    def StreamChannel(
        self, request_iterator: Iterator[p4runtime_pb2.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
        session = Session()
        with self._sessions_lock:
            if len(self._sessions) >= MAX_STREAMS:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"there are {MAX_STREAMS} streams already")
            self._sessions.add(session)
        failures: list[DataPlaneError] = []
        reader = threading.Thread(
            target=self._serve_stream, args=(request_iterator, session, failures), daemon=True
        )
        context.add_callback(session.close)
        reader.start()
        try:
            yield from session.messages()
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
        session: Session,
        failures: list[DataPlaneError],
    ) -> None:
        """Handles a controller's messages until it leaves or breaks the rules of arbitration."""
        try:
            for request in requests:
                if request.HasField("arbitration"):
                    with self._write_lock:
                        self._arbitration.update(session, request.arbitration)
                else:
                    self._handle_message(session, request)
        except DataPlaneError as error:
            failures.append(error)
        except grpc.RpcError:
            pass  # cancelled: the controller is gone
        except Exception as error:  # grpc raises a bare Exception when a stream breaks
            logger.debug("a controller's stream ended: %s", error)
        finally:
            session.close()

    def _handle_message(self, session: Session, request: p4runtime_pb2.StreamMessageRequest) -> None:
        try:
            if not self._arbitration.is_primary(session):
                raise DataPlaneError("PERMISSION_DENIED", "Not primary")
            if request.HasField("packet"):
                self.device.committed.packet_out(request.packet)
            elif request.HasField("digest_ack"):
                self.device.committed.acknowledge_digest(request.digest_ack)
            else:
                raise DataPlaneError("UNIMPLEMENTED", "this kind of stream message is not supported")
        except DataPlaneError as error:
            session.send(stream_error(error, request))

    def _tell_primaries(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        for session in self._arbitration.primaries():
            session.send(message)

    # --- checks

    def _check_device(self, device_id: int) -> None:
        if device_id != self.device.device_id:
            raise DataPlaneError("NOT_FOUND", f"this is device {self.device.device_id}, not {device_id}")

    def _check_primary(self, request: PrimaryRequest) -> None:
        self._check_device(request.device_id)
        own_id = (
            (request.election_id.high, request.election_id.low) if request.HasField("election_id") else None
        )
        self._arbitration.check_primary(request.role, own_id)


def _abort(context: grpc.ServicerContext, error: DataPlaneError) -> NoReturn:
    context.abort(grpc_code(error), str(error))
    raise AssertionError("abort never returns")
