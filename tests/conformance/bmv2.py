"""BMv2 as a target of the STF executor: tables over P4Runtime, packets over its data plane gRPC
service, so that neither root nor interfaces are needed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from tests.v1model.p4runtime.client import P4RuntimeClient, error_text
from v1model.compile import compile_p4
from v1model.dataplane import CloneSession, CounterValue, DataPlaneError, MeterConfig, Replica, TableEntry
from v1model.ir import ActionCall
from v1model.p4runtime.entity import decode_counter, encode_meter
from v1model.p4runtime.schema import Schema
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

CPU_PORT = 510
START_TIMEOUT_S = 20.0
PACKET_TIMEOUT_S = 5.0

INSERT, MODIFY, DELETE = (getattr(p4runtime_pb2.Update, name) for name in ("INSERT", "MODIFY", "DELETE"))


class NotPortableError(Exception):
    """A case does what can't be done on BMv2 over P4Runtime."""


def is_present() -> bool:
    return all(shutil.which(tool) for tool in ("p4c-bm2-ss", "simple_switch_grpc"))


def compile_p4c(program: Path, directory: Path) -> tuple[Path, Path]:
    """(P4Info, BMv2's JSON) in `directory`."""
    p4info, config = directory / "p4info.txtpb", directory / "config.json"
    command: list[str | Path] = ["p4c-bm2-ss", program, "--p4runtime-files", p4info, "-o", config]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotPortableError(f"p4c does not compile it for BMv2: {done.stderr.strip()}")
    return p4info, config


def start_switch(control_port: int, packets_port: int) -> subprocess.Popen[bytes]:
    """simple_switch_grpc without a program, ready on both TCP ports: P4Runtime's and the packets'."""
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "0"]
    # What it would share with any other that runs on the machine, and ends if it can't have.
    command += ["--thrift-port", str(free_port())]
    command += ["--notifications-addr", f"ipc:///tmp/bmv2-{control_port}-notifications.ipc", "--"]
    command += ["--grpc-server-addr", f"127.0.0.1:{control_port}", "--cpu-port", str(CPU_PORT)]
    command += ["--dp-grpc-server-addr", f"127.0.0.1:{packets_port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + START_TIMEOUT_S
    try:
        for port in (packets_port, control_port):
            while not _is_open(port):
                assert process.poll() is None, "simple_switch_grpc ended"
                assert time.monotonic() < deadline, f"simple_switch_grpc does not listen on port {port}"
                time.sleep(0.01)
    except AssertionError:
        process.kill()
        process.wait()
        raise
    return process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Bmv2Target:
    """simple_switch_grpc with a program that p4c has compiled."""

    def __init__(self, program: Path) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None
        self._client: P4RuntimeClient | None = None
        p4info, config = compile_p4c(program, Path(self._directory.name))
        self._control, self._packets = free_port(), free_port()
        self._process = start_switch(self._control, self._packets)
        self._client = P4RuntimeClient(0, f"127.0.0.1:{self._control}", (0, 1))
        try:
            self._client.set_pipeline(p4info, config)
        except grpc.RpcError as error:
            self.close()
            raise NotPortableError(f"BMv2 does not take the program: {error.details()}") from error
        info = text_format.Parse(p4info.read_text(), p4info_pb2.P4Info())
        self._stream = PacketStream(f"127.0.0.1:{self._packets}")
        try:
            self.data_plane: Any = RemoteDataPlane(self._client, info, program, self._stream)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Bmv2Target:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self.close()

    def close(self) -> None:
        if self._client:
            self._client.tear_down()
        if self._process:
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()

    def send(self, port: int, data: bytes) -> None:
        self._stream.send(port, data)

    def received(self, expected: Mapping[int, int]) -> Mapping[int, Sequence[bytes]]:
        return self._stream.flush()


class RemoteDataPlane:
    """The part of `DataPlane` that the executor uses, over P4Runtime."""

    def __init__(
        self, client: P4RuntimeClient, p4info: p4info_pb2.P4Info, program: Path, stream: PacketStream
    ) -> None:
        self._stream = stream
        self.program = compile_p4(program).program
        self._client = client
        self._schema = Schema(p4info, self.program)
        self._ids = {
            info.preamble.name: info.preamble.id for kind in (p4info.counters, p4info.meters) for info in kind
        }
        self._known: set[tuple[str, int]] = set()

    def insert(self, entry: TableEntry) -> None:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[entry.table]
        table.encode_key(entry, entity.table_entry)
        assert entry.action
        table.encode_action(entry.action, entity.table_entry.action.action)
        self._write(INSERT, entity)

    def set_default(self, table_name: str, action: ActionCall | None) -> None:
        entity = p4runtime_pb2.Entity()
        table = self._schema.tables_by_name[table_name]
        entity.table_entry.table_id, entity.table_entry.is_default_action = table.id, True
        if action:
            table.encode_action(action, entity.table_entry.action.action)
        self._write(MODIFY, entity)

    def set_multicast_group(self, group: int, replicas: Iterable[Replica]) -> None:
        entity = p4runtime_pb2.Entity()
        message = entity.packet_replication_engine_entry.multicast_group_entry
        message.multicast_group_id = group
        _add_replicas(message, replicas)
        self._put("group", group, entity)

    def set_clone_session(self, session: int, config: CloneSession) -> None:
        entity = p4runtime_pb2.Entity()
        message = entity.packet_replication_engine_entry.clone_session_entry
        message.session_id, message.packet_length_bytes = session, config.packet_length_bytes
        _add_replicas(message, config.replicas)
        self._put("session", session, entity)

    def set_meter(self, name: str, index: int, config: MeterConfig) -> None:
        entity = p4runtime_pb2.Entity()
        entity.meter_entry.meter_id = self._ids[name]
        entity.meter_entry.index.index = index
        encode_meter(config, entity.meter_entry.config)
        self._write(MODIFY, entity)

    def counter(self, name: str, index: int) -> CounterValue:
        self._stream.flush()
        entity = p4runtime_pb2.Entity()
        entity.counter_entry.counter_id = self._ids[name]
        entity.counter_entry.index.index = index
        (read,) = self._client.read(entity)
        return decode_counter(read.counter_entry.data)

    def set_register(self, name: str, index: int, value: int) -> None:
        raise NotPortableError("BMv2 has no registers over P4Runtime")

    def _put(self, kind: str, own_id: int, entity: p4runtime_pb2.Entity) -> None:
        if (kind, own_id) in self._known:
            self._write(DELETE, entity)
        self._write(INSERT, entity)
        self._known.add((kind, own_id))

    def _write(self, update_type: p4runtime_pb2.Update.Type, entity: p4runtime_pb2.Entity) -> None:
        self._stream.flush()  # the packets before meet the entries before
        try:
            self._client.write(p4runtime_pb2.Update(type=update_type, entity=entity))
        except grpc.RpcError as error:
            raise DataPlaneError("UNKNOWN", error_text(error)) from error


class PacketStream:
    """BMv2's p4.bm.DataplaneInterface. When a client ends its half of the stream, BMv2 ends the other
    half as soon as all packets are through, so each flush is a stream of its own."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._call = self._channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            request_serializer=PacketRequest.SerializeToString,
            response_deserializer=PacketResponse.FromString,
        )
        self._waiting: list[Any] = []
        self._received: dict[int, list[bytes]] = defaultdict(list)

    def send(self, port: int, data: bytes) -> None:
        self._waiting.append(PacketRequest(id=len(self._waiting) + 1, device_id=0, port=port, packet=data))

    def flush(self) -> Mapping[int, Sequence[bytes]]:
        """Runs what was sent; all that has come out by now, by port. Packets that come of different
        packets have no order in BMv2: they are sorted as those were sent."""
        if self._waiting:
            responses = self._run(time.monotonic() + START_TIMEOUT_S)
            for response in sorted(responses, key=lambda response: response.id):
                self._received[response.port].append(response.packet)
            self._waiting.clear()
        return self._received

    def close(self) -> None:
        self._channel.close()

    def _run(self, deadline: float) -> list[Any]:
        responses: list[Any] = []
        while True:
            try:
                for response in self._call(iter(self._waiting), timeout=PACKET_TIMEOUT_S):
                    responses.append(response)  # noqa: PERF402  # what came before an error counts
                return responses
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    # BMv2 miscounts packets that were resubmitted or recirculated: it waits for ever.
                    return responses
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # its ports are not ready yet


def _message(name: str) -> Any:
    """PacketStreamRequest or PacketStreamResponse of BMv2's dataplane_interface.proto."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="p4.bm", syntax="proto3")
    message = file.message_type.add(name=name)
    types = descriptor_pb2.FieldDescriptorProto
    fields = {"id": types.TYPE_UINT64, "device_id": types.TYPE_UINT64, "port": types.TYPE_UINT32}
    for number, (field, field_type) in enumerate({**fields, "packet": types.TYPE_BYTES}.items(), 1):
        message.field.add(name=field, number=number, type=field_type, label=types.LABEL_OPTIONAL)
    descriptor = descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(descriptor.message_types_by_name[name])


PacketRequest, PacketResponse = _message("PacketStreamRequest"), _message("PacketStreamResponse")


def _add_replicas(message: Any, replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        message.replicas.add(egress_port=replica.port, instance=replica.instance)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
