"""The switches that the P4Runtime tests run on: the embedded one in this process, BMv2 where it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from tests.conformance import bmv2 as bmv2_engine
from v1model.compile import compile_p4
from v1model.frontend.preprocess import preprocess
from v1model.p4info import p4info
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.server import P4RuntimeServer
from v1model.protos.p4.config.v1 import p4info_pb2

PROGRAM = Path(__file__).with_name("control.p4")
CPU_PORT = bmv2_engine.CPU_PORT


@dataclass(frozen=True)
class Artifacts:
    """What a controller sends to a switch."""

    p4info: p4info_pb2.P4Info
    device_config: bytes


@dataclass(frozen=True)
class RunningSwitch:
    address: str
    artifacts: Artifacts
    server: P4RuntimeServer | None = None  # the embedded one


def compile_embedded(program: Path = PROGRAM) -> Artifacts:
    device_config = DeviceConfig(str(program), preprocess(program))
    return Artifacts(p4info(compile_p4(program).program), device_config.encode())


def compile_bmv2(directory: Path, program: Path = PROGRAM) -> Artifacts:
    info, config = bmv2_engine.compile_p4c(program, directory)
    return Artifacts(text_format.Parse(info.read_text(), p4info_pb2.P4Info()), config.read_bytes())


@contextmanager
def embedded(artifacts: Artifacts) -> Iterator[RunningSwitch]:
    server = P4RuntimeServer("127.0.0.1:0", 0, EmbeddedEngine({}, CPU_PORT))
    server.start()
    try:
        yield RunningSwitch(f"127.0.0.1:{server.port}", artifacts, server)
    finally:
        server.stop()


@contextmanager
def bmv2(artifacts: Artifacts) -> Iterator[RunningSwitch]:
    port = bmv2_engine.free_port()
    process = bmv2_engine.start_switch(port, bmv2_engine.free_port())
    try:
        yield RunningSwitch(f"127.0.0.1:{port}", artifacts)
    finally:
        process.kill()
        process.wait()
