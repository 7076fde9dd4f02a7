"""The switches that the P4Runtime tests run on: the embedded one in this process, BMv2 where it is."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from p4.config.v1 import p4info_pb2

from v1model.compile import compile_p4
from v1model.frontend.preprocess import preprocess
from v1model.p4info import p4info
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.server import P4RuntimeServer

PROGRAM = Path(__file__).with_name("control.p4")
CPU_PORT = 510
START_TIMEOUT_S = 20.0


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
    info, config = directory / "p4info.txtpb", directory / "config.json"
    command = ["p4c-bm2-ss", program, "--p4runtime-files", info, "-o", config]
    subprocess.run(command, check=True, capture_output=True)
    return Artifacts(text_format.Parse(info.read_text(), p4info_pb2.P4Info()), config.read_bytes())


def has_bmv2() -> bool:
    return all(shutil.which(tool) for tool in ("p4c-bm2-ss", "simple_switch_grpc"))


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
    port = _free_port()
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "0", "--"]
    command += ["--grpc-server-addr", f"127.0.0.1:{port}", "--cpu-port", str(CPU_PORT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for_port(port, process)
        yield RunningSwitch(f"127.0.0.1:{port}", artifacts)
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "simple_switch_grpc ended"
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
            time.sleep(0.01)
    raise TimeoutError(f"simple_switch_grpc does not listen on port {port}")
