"""A network over several servers, as `topologies.network` is one on a single machine.

Switches serve P4Runtime on Unix sockets of their servers. The controller runs here and reaches them through
SSH connections, with TLS and certificates on both sides.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from cluster.agents import Agents
from cluster.clocks import Offset, shift_capture
from cluster.errors import ServerError
from cluster.fabric_text import to_message
from cluster.messages import CHUNK_BYTES, PYTHON, to_bytes, to_text
from cluster.placement import Placement
from cluster.refusals import Found
from cluster.remote_process import RemoteProcess
from cluster.session import Session
from cluster.ssh import forwarding
from emulator.result import ROOT
from topologies.certificates import Certificates, make_certificates
from topologies.engines import Artifacts, Engine
from topologies.errors import EngineError
from topologies.part import MAX_NETWORK_ID
from topologies.process import Process, end_process, end_processes
from topologies.run_records import RunRecord
from topologies.running import RunningNetwork
from topologies.shaping import DEFAULT_MTU_BYTES

START_TIMEOUT_S: Final = 60.0
BUILD_TIMEOUT_S: Final = 600.0
"""Seconds within which a server builds its part: hundreds of hosts on a slow one take minutes."""
_POLL_S: Final = 0.05
_GUARD: Final = ("setpriv", "--pdeathsig", "TERM", "--")
_CERTIFICATES: Final = ("ca.crt", "server.crt", "server.key")
"""Files that switches need, as `make_certificates` names them."""

Result = TypeVar("Result")


class ClusterNetwork(RunningNetwork):
    """A running network. Use as a context manager: leaving it removes all that it started, everywhere."""

    def __init__(
        self,
        placement: Placement,
        servers: Sequence[Found],
        engine: Engine,
        delay_ms: float = 0.0,
        queue_packets: int | None = None,
        mtu_bytes: int = DEFAULT_MTU_BYTES,
    ) -> None:
        """Build nothing yet. `servers` are those of the placement, as `cluster.preflight` found them.

        The other parameters are those of `topologies.network.Network`.
        """
        self.placement, self.fabric, self.engine = placement, placement.fabric, engine
        self._found = tuple(servers)
        self._first_network_id = secrets.randbelow(MAX_NETWORK_ID)  # no collisions on shared servers
        self._settings: dict[str, Any] = {
            "delay_ms": delay_ms,
            "queue_packets": queue_packets,
            "mtu_bytes": mtu_bytes,
        }
        self._stack = contextlib.ExitStack()
        self._processes: list[Process] = []
        self.switch_processes: dict[str, Process] = {}
        self.certificates: Certificates | None = None
        self.clocks: dict[str, Offset] = {}
        """Offset of each server's CLOCK_MONOTONIC from ours."""
        self.wall_clocks: dict[str, Offset] = {}
        """Offset of each server's CLOCK_REALTIME from ours."""

    def __enter__(self) -> ClusterNetwork:
        with contextlib.ExitStack() as stack:
            stack.callback(self._stack.close)
            enter = self._stack.enter_context
            self.directory = Path(enter(tempfile.TemporaryDirectory(prefix="weir-")))
            self._run_record = enter(RunRecord(self.directory)) if os.geteuid() == 0 else None
            self.certificates = make_certificates(self.directory)
            self._agents = enter(Agents(self._found, self.directory))
            self.compare_clocks()
            self._folders = self.on_all(self._open)
            self._send_certificates()
            self._forward_control()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        end_processes(self._processes)
        self._stack.close()

    @property
    def control_apart(self) -> bool:
        """Return whether this machine, where the controller runs, is none of the servers."""
        return not any(found.is_here for found in self._found)

    def address(self, switch: str) -> str:
        """Return the gRPC address at which this machine reaches P4Runtime of `switch`."""
        return f"unix:{self._socket(switch)}"

    def popen(self, host: str, command: Sequence[str], **options: Any) -> Process:
        """Start a process in a host or switch, on its server; it ends with the network or this process."""
        session = self._session_of(host)
        words = [PYTHON if word == sys.executable else word for word in command]
        streams = (options.get(which) for which in ("stdin", "stdout", "stderr"))
        process = session.start(host, words, *streams)
        self._own(process)
        return process

    def popen_here(self, command: Sequence[str], **options: Any) -> Process:
        """Start a process that belongs to the network but to no host, on this machine."""
        process = subprocess.Popen([*_GUARD, *command], start_new_session=True, **options)
        if self._run_record is not None:
            self._run_record.add_process(process.pid)
        self._own(process)
        return process

    def ask(self, name: str, command: str) -> str:
        """Return the output of a shell command in the namespace of a host or switch."""
        return str(self._session_of(name).ask("command", name=name, command=command))

    def compile(self, program: Path, defines: Mapping[str, int]) -> Artifacts:
        """Compile a program of this checkout here and on all servers, so that no switch compiles while
        measured.

        Raises EngineError if the program is refused.
        """
        place = str(program.relative_to(ROOT))

        def on_server(name: str, session: Session) -> None:
            session.ask("compile", answer_within_s=BUILD_TIMEOUT_S, program=place, defines=dict(defines))

        artifacts = self.engine.compile(program, defines, self.directory)
        self.on_all(on_server)
        return artifacts

    def start_switches(self) -> None:
        """Start every switch's process and wait until it serves P4Runtime."""
        for switch in self.fabric.switches:
            with self.switch_log(switch).open("ab") as log:
                process = self.popen(
                    switch, self._switch_command(switch), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            self.switch_processes[switch] = process
        for switch in self.fabric.switches:
            self._wait_serving(switch)

    def stop_switches(self) -> None:
        """End the switches' processes; they can be started again."""
        end_processes(self.switch_processes.values())
        self.switch_processes.clear()
        for switch in self.fabric.switches:
            self._session_of(switch).tell("remove", path=f"{switch}.sock")

    def transmitted_bytes(self, host: str) -> int:
        """Return the bytes that left the host's interface since it was made."""
        return int(self._session_of(host).ask("transmitted_bytes", host=host))

    def link_drops(self) -> int:
        """Return how many packets the queues in front of all links dropped, tunnels included."""
        return sum(self.on_all(lambda name, session: int(session.ask("link_drops"))).values())

    def link_bytes(self) -> dict[str, tuple[int, int]]:
        """Return the bytes over each link "switch-peer" since it was made: to the switch, and from it."""

        def of_server(name: str, session: Session) -> dict[str, Any]:
            switches = {
                switch: process.number
                for switch, process in list(self.switch_processes.items())
                if isinstance(process, RemoteProcess) and process.server == name
            }
            found: dict[str, Any] = session.ask("link_bytes", switches=switches)
            return found

        parts = self.on_all(of_server)
        return {link: (int(to), int(of)) for part in parts.values() for link, (to, of) in part.items()}

    def seen_by(self, name: str, path: Path) -> Path:
        """Return where a host or switch finds the file that is at `path` below `directory` here."""
        return self._folders[self.placement.server_of[name]] / path.relative_to(self.directory)

    def send(self, name: str, paths: Iterable[Path]) -> None:
        """Copy these files to the server of a host or switch."""
        session = self._session_of(name)
        for path in paths:
            self._put(session, path)

    def fetch(self, name: str, path: Path) -> None:
        """Copy a file from the server of a host or switch; shift times in captures to our clock."""
        session, place = self._session_of(name), str(path.relative_to(self.directory))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            while part := to_bytes(session.ask("get", path=place, offset=file.tell())):
                file.write(part)
        if path.suffix == ".pcap":
            shift_capture(path, -self.wall_clock_ahead_s(name))

    def clock_ahead_s(self, name: str) -> float:
        """Return the seconds by which CLOCK_MONOTONIC of a host or switch is ahead of ours."""
        return self.clocks[self.placement.server_of[name]].ahead_s

    def wall_clock_ahead_s(self, name: str) -> float:
        """Return the seconds by which CLOCK_REALTIME of a host or switch is ahead of ours."""
        return self.wall_clocks[self.placement.server_of[name]].ahead_s

    def compare_clocks(self) -> None:
        """Compare the current clocks of all servers with ours."""
        self.clocks = self.on_all(lambda name, session: session.clock("monotonic"))
        self.wall_clocks = self.on_all(lambda name, session: session.clock("wall"))

    def on_all(self, do: Callable[[str, Session], Result]) -> dict[str, Result]:
        """Run a function on all servers at the same time; returns the results by server."""
        return self._agents.on_all(do)

    def _open(self, name: str, session: Session) -> Path:
        """Let a server build its part; returns the folder for its files there."""
        return Path(
            session.ask(
                "open",
                answer_within_s=BUILD_TIMEOUT_S,
                fabric=to_message(self.fabric),
                vertices=sorted(self.placement.on(name)),
                tunnels=list(self._tunnels(name)),
                engine=self.engine.name,
                **self._settings,
            )
        )

    def _tunnels(self, server: str) -> Iterator[dict[str, Any]]:
        """Yield the tunnel ends of a server; both ends of a link have the same network id."""
        for number, (one, other) in enumerate(self.placement.crossing):
            for vertex, peer in ((one, other), (other, one)):
                if self.placement.server_of[vertex] == server:
                    yield {
                        "vertex": vertex,
                        "peer": peer,
                        "network_id": (self._first_network_id + number) % MAX_NETWORK_ID + 1,
                        "local": self._address_of(server),
                        "remote": self._address_of(self.placement.server_of[peer]),
                    }

    def _address_of(self, server: str) -> str:
        return self._agents.servers[server].reached_at

    def _send_certificates(self) -> None:
        def to_server(name: str, session: Session) -> None:
            for file in _CERTIFICATES:
                self._put(session, self.directory / file)

        self.on_all(to_server)

    def _forward_control(self) -> None:
        """Forward the switches' sockets to this machine, by one connection to each server."""
        for name, found in self._agents.servers.items():
            switches = [one for one in self.fabric.switches if self.placement.server_of[one] == name]
            sockets = {self._socket(one): self._folders[name] / f"{one}.sock" for one in switches}
            if sockets:
                log = self._stack.enter_context((self.directory / f"ssh-{name}.log").open("wb"))
                process = self.popen_here(
                    forwarding(found.server, sockets), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
                self._wait_forwarding(name, process, list(sockets))

    def _wait_forwarding(self, name: str, process: Process, sockets: Sequence[Path]) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not all(socket.exists() for socket in sockets):
            if process.poll() is not None or time.monotonic() > deadline_s:
                output = (self.directory / f"ssh-{name}.log").read_text(errors="replace").strip()[-500:]
                raise ServerError(
                    f"server {name} does not let its switches' sockets be reached ({output}): allow "
                    "AllowStreamLocalForwarding in its sshd_config"
                )
            time.sleep(_POLL_S)

    def _switch_command(self, switch: str) -> list[str]:
        folder = self._folders[self.placement.server_of[switch]]
        address = f"unix:{folder / switch}.sock"
        names = ("ca.crt", "server.crt", "server.key", "client.crt", "client.key")
        certificates = Certificates(*(folder / name for name in names))
        return self.engine.command(
            self.fabric.device_id(switch), self.interfaces(switch), address, certificates
        )

    def _wait_serving(self, switch: str) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        process, session = self.switch_processes[switch], self._session_of(switch)
        while time.monotonic() < deadline_s and process.poll() is None:
            if session.ask("accepts", path=f"{switch}.sock"):
                return
            time.sleep(_POLL_S)
        output = self.switch_log(switch).read_text(errors="replace")[-2000:].strip()
        raise EngineError(
            f"switch {switch} ({self.engine.name}) on server {session.server} did not start:\n"
            f"{output or '(it said nothing)'}"
        )

    def _put(self, session: Session, path: Path) -> None:
        place = str(path.relative_to(self.directory))
        with path.open("rb") as file:
            begin = True
            while (part := file.read(CHUNK_BYTES)) or begin:
                session.ask("put", path=place, data=to_text(part), begin=begin)
                begin = False

    def _socket(self, switch: str) -> Path:
        return self.directory / f"{switch}.sock"

    def _session_of(self, name: str) -> Session:
        return self._agents.sessions[self.placement.server_of[name]]

    def _own(self, process: Process) -> None:
        self._stack.callback(end_process, process)
        self._processes.append(process)
