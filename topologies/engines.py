"""Switch engines: how to compile a P4 program for one, and its command line.

Every engine is a program with the command line of BMv2's simple_switch_grpc. Engines differ in name and in
their device config: p4c's JSON, or the embedded switch's artifact.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from topologies.errors import EngineError

if TYPE_CHECKING:
    from topologies.certificates import Certificates

CPU_PORT = 510
BMV2_GROWTH_BYTES = 512
"""Largest number of bytes by which a packet can grow in BMv2 (PacketBuffer's headroom)."""


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Files of a compiled program, as SetForwardingPipelineConfig takes them."""

    p4info: Path
    device_config: Path


class Engine(ABC):
    """Switch that runs P4 programs and speaks P4Runtime."""

    name: str
    program: tuple[str, ...]
    """Command that starts the switch, before its arguments."""

    @abstractmethod
    def compile(
        self, program: Path, defines: Mapping[str, int], into: Path, *, in_full: bool = True
    ) -> Artifacts:
        """Compile `program`; raises EngineError with the compiler's own words.

        Unless `in_full`, an engine may leave work for later that it can do while it forwards.
        """

    def command(
        self,
        device_id: int,
        interfaces: Sequence[tuple[int, str]],
        address: str,
        certificates: Certificates | None = None,
    ) -> list[str]:
        """Return the command that serves P4Runtime at `address`; `interfaces` are pairs (port, interface).

        With certificates it serves over TLS, and only clients whose certificate the same authority signed.
        """
        ports = [argument for port, name in interfaces for argument in ("-i", f"{port}@{name}")]
        target = ["--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
        if certificates is not None:
            target += ["--grpc-server-ssl", "--grpc-server-with-client-auth"]
            target += ["--grpc-server-cacert", str(certificates.authority)]
            target += ["--grpc-server-cert", str(certificates.server_certificate)]
            target += ["--grpc-server-key", str(certificates.server_key)]
        return [*self.program, "--no-p4", "--device-id", str(device_id), *ports, "--", *target]


def _definitions(defines: Mapping[str, int]) -> list[str]:
    return [f"-D{name}={value}" for name, value in defines.items()]


def _run_compiler(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EngineError(f"{command[0]} refused the program:\n{done.stderr or done.stdout}")


class Embedded(Engine):
    """Switch of the folder v1model/."""

    name = "embedded"
    program = (sys.executable, "-m", "v1model", "switch", "--log-json")

    compiler = (sys.executable, "-m", "v1model", "compile")

    def compile(
        self, program: Path, defines: Mapping[str, int], into: Path, *, in_full: bool = True
    ) -> Artifacts:
        artifacts = Artifacts(into / f"{program.stem}.p4info.txtpb", into / f"{program.stem}.config")
        outputs = ["--p4info", str(artifacts.p4info), "--config", str(artifacts.device_config)]
        options = [*outputs, "--full-build"] if in_full else outputs
        _run_compiler([*self.compiler, *options, *_definitions(defines), str(program)])
        return artifacts


class Bmv2(Engine):
    """BMv2's simple_switch_grpc with p4c's compiler, where both are on PATH."""

    name = "bmv2"
    compiler, switch = "p4c-bm2-ss", "simple_switch_grpc"
    program = (switch,)

    def __init__(self) -> None:
        missing = [tool for tool in (self.compiler, self.switch) if shutil.which(tool) is None]
        if missing:
            raise EngineError(
                f"engine bmv2: not on PATH: {', '.join(missing)}. Install p4c and behavioral-model "
                "(https://github.com/p4lang), or use ENGINE=embedded, which needs neither"
            )

    def compile(
        self, program: Path, defines: Mapping[str, int], into: Path, *, in_full: bool = True
    ) -> Artifacts:
        artifacts = Artifacts(into / f"{program.stem}.p4info.txtpb", into / f"{program.stem}.json")
        if defines.get("VALUE_SIZE", BMV2_GROWTH_BYTES) > BMV2_GROWTH_BYTES:
            raise EngineError(
                f"engine bmv2: it lets a packet grow by {BMV2_GROWTH_BYTES} bytes, so values have no more: "
                f"VALUE_BYTES={BMV2_GROWTH_BYTES}"
            )
        outputs = ["--p4runtime-files", str(artifacts.p4info), "-o", str(artifacts.device_config)]
        _run_compiler([self.compiler, "--std", "p4-16", *_definitions(defines), *outputs, str(program)])
        return artifacts


ENGINES: dict[str, Callable[[], Engine]] = {"embedded": Embedded, "bmv2": Bmv2}


def make_engine(name: str) -> Engine:
    """Return the engine of that name.

    Raises EngineError if there is no such engine or its programs are missing.
    """
    if name not in ENGINES:
        raise EngineError(f"no engine {name!r}: choose one of {', '.join(ENGINES)}")
    return ENGINES[name]()
