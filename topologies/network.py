"""Mininet network started from a fabric: hosts and switches in namespaces, links at their rates.

Every switch has its own namespace, so two networks on one machine don't meet. P4Runtime is served on a Unix
socket, which works across namespaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from topologies.certificates import Certificates, make_certificates
from topologies.engines import Artifacts, Engine
from topologies.errors import EngineError, TopologyError
from topologies.fabric import Fabric
from topologies.forkserver import ForkServer
from topologies.forkserver.client import ForkedProcess
from topologies.machine_check import check_machine, check_open_files
from topologies.part import Part, Tunnel
from topologies.process import Process, end_process, end_processes
from topologies.run_records import RunRecord
from topologies.running import RunningNetwork
from topologies.shaping import DEFAULT_MTU_BYTES, Shape, require

if TYPE_CHECKING:
    from mininet.node import Node

START_TIMEOUT_S = 60.0
_POLL_S = 0.02
FORKED = {
    "hostlib.node.worker": "hostlib.node.worker",
    "hostlib.storage.storage": "hostlib.storage.storage",
    "v1model": "v1model.p4runtime.server",
}
"""Programs that a network runs many times, and the modules to import for them."""
_GUARD = ("setpriv", "--pdeathsig", "TERM", "--")  # ends the process when we die

_AnyProcess = TypeVar("_AnyProcess", subprocess.Popen[bytes], ForkedProcess)


class Network(RunningNetwork):
    """Running network. Use as a context manager: leaving it removes everything that it started."""

    def __init__(
        self,
        fabric: Fabric,
        engine: Engine,
        delay_ms: float = 0.0,
        secure: bool = False,
        queue_packets: int | None = None,
        mtu_bytes: int = DEFAULT_MTU_BYTES,
        part: Part | None = None,
    ) -> None:
        """Check the machine and prepare the network; raises TopologyError if it can't be built here.

        With `secure`, P4Runtime is served over TLS, with certificates on both sides that are made for this
        network. `queue_packets` limits a queue at a switch; None means the kernel's 1000 packets. `mtu_bytes`
        is the MTU of all links. `part` is the part of the fabric on this machine; None means all of it.
        """
        check_machine()
        self._part = Part(frozenset(fabric.graph)) if part is None else part
        check_open_files(len(self._part.vertices))
        self.fabric, self.engine = fabric, engine
        self._delay_ms, self._queue_packets, self._mtu_bytes = delay_ms, queue_packets, mtu_bytes
        require(delay_ms, fabric.requests_first)
        self._secure = secure
        self.certificates: Certificates | None = None
        self._stack = contextlib.ExitStack()
        self._processes: list[Process] = []
        self.switch_processes: dict[str, Process] = {}

    def __enter__(self) -> Network:
        with contextlib.ExitStack() as stack:
            stack.callback(self._stack.close)
            self.directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-")))
            if self._secure:
                self.certificates = make_certificates(self.directory)
            self._run_record = self._stack.enter_context(RunRecord(self.directory))
            self._forks = self._stack.enter_context(ForkServer(FORKED.values(), self.popen_here))
            self._build()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        end_processes(self._processes)
        self._stack.close()

    def address(self, switch: str) -> str:
        """Return where `switch` serves P4Runtime, as gRPC spells it."""
        return f"unix:{self.directory / switch}.sock"

    @property
    def _switches(self) -> Iterator[str]:
        """Return the switches on this machine."""
        return (switch for switch in self.fabric.switches if switch in self._part.vertices)

    def popen(self, host: str, command: Sequence[str], **options: Any) -> Process:
        """Start a process in the namespace of `host`; it ends with the network, or with this process.

        A program in FORKED is forked from a process that has already imported it.
        """
        namespace = f"/proc/{self.mininet[host].pid}/ns/net"
        if tuple(command[:2]) == (sys.executable, "-m") and command[2] in FORKED:
            return self._own(self._forks.start(command[2], command[3:], namespace, **options))
        # Not Node.popen: mnexec joins the mount namespace too, which leaves a chroot.
        return self.popen_here(["nsenter", f"--net={namespace}", *command], **options)

    def popen_here(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process that belongs to the network but to no host, such as the controller."""
        return self._own(subprocess.Popen([*_GUARD, *command], start_new_session=True, **options))

    def _own(self, process: _AnyProcess) -> _AnyProcess:
        self._run_record.add_process(process.pid)
        self._stack.callback(end_process, process)
        self._processes.append(process)
        return process

    def compile(self, program: Path, defines: Mapping[str, int]) -> Artifacts:
        """Compile a P4 program for the switches; raises EngineError if it is refused."""
        return self.engine.compile(program, defines, self.directory)

    def start_switches(self) -> None:
        """Start every switch's process and wait until it serves P4Runtime; raises EngineError if one does
        not."""
        for switch in self._switches:
            device_id = self.fabric.device_id(switch)
            command = self.engine.command(
                device_id, self.interfaces(switch), self.address(switch), self.certificates
            )
            log = self._stack.enter_context(self.switch_log(switch).open("ab"))
            process = self.popen(switch, command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.switch_processes[switch] = process
        for switch in self._switches:
            self._wait_serving(switch)

    def stop_switches(self) -> None:
        """End the switches' processes; they can be started again."""
        end_processes(self.switch_processes.values())
        self.switch_processes.clear()
        for switch in self._switches:
            (self.directory / f"{switch}.sock").unlink(missing_ok=True)

    def transmitted_bytes(self, host: str) -> int:
        """Return the bytes that left the host's interface since it was made."""
        return self._counters(host)["tx"]["bytes"]

    def received_packets(self, host: str) -> int:
        """Return the packets that came to the host's interface since it was made."""
        return self._counters(host)["rx"]["packets"]

    def link_drops(self) -> int:
        """Return the packets that the queues in front of all links dropped."""
        return sum(_queue_drops(node) for node in self._vertices())

    def link_bytes(self) -> dict[str, tuple[int, int]]:
        """Return the bytes over each link "switch-peer" since it was made: to the switch, and from it."""
        read: dict[str, tuple[int, int]] = {}
        for switch, process in list(self.switch_processes.items()):
            read |= self.link_bytes_of(switch, process.pid)
        return read

    def link_bytes_of(self, switch: str, pid: int) -> dict[str, tuple[int, int]]:
        """Return the same for one switch, whose process is `pid`; empty if the process has ended.

        The numbers come from /proc/PID/net/dev, so no program runs in the namespace.
        """
        links = {f"{switch}-eth{port.number}": f"{switch}-{port.peer}" for port in self.fabric.ports(switch)}
        try:
            text = Path(f"/proc/{pid}/net/dev").read_text(encoding="ascii")
        except OSError:
            return {}
        return {links[interface]: counted for interface, counted in _counted(text) if interface in links}

    def ask(self, name: str, command: str) -> str:
        """Return the output of a shell command in the namespace of a host or switch."""
        return str(self.mininet[name].cmd(command))

    def seen_by(self, name: str, path: Path) -> Path:
        """Return `path`: all hosts see the files of this machine."""
        return path

    def send(self, name: str, paths: Iterable[Path]) -> None:
        """Do nothing: all hosts see the files of this machine."""

    def fetch(self, name: str, path: Path) -> None:
        """Do nothing: all hosts see the files of this machine."""

    def clock_ahead_s(self, name: str) -> float:
        """Return 0: all hosts have this machine's clock."""
        return 0.0

    def wall_clock_ahead_s(self, name: str) -> float:
        """Return 0: all hosts have this machine's clock."""
        return 0.0

    def _counters(self, host: str) -> dict[str, dict[str, int]]:
        """Return the kernel's counters of the host's interface."""
        (shown,) = json.loads(self.mininet[host].cmd(f"ip -j -s link show dev {host}-eth0"))
        counters: dict[str, dict[str, int]] = shown["stats64"]
        return counters

    def _build(self) -> None:
        from mininet.log import setLogLevel
        from mininet.net import Mininet

        from topologies.mininet_nodes import NamespaceSwitch, ScriptedHost

        setLogLevel("error")
        self.mininet = Mininet(controller=None, build=False, cleanup=False, waitConnected=False)
        self._stack.callback(self._stop_mininet)
        hosts = {name: one for name, one in self.fabric.hosts.items() if name in self._part.vertices}
        for name, endpoint in hosts.items():
            self.mininet.addHost(name, cls=ScriptedHost, ip=f"{endpoint.ipv4}/8", mac=endpoint.mac)
        for switch in self._switches:
            dpid = f"{self.fabric.device_id(switch):x}"
            self.mininet.addSwitch(switch, cls=NamespaceSwitch, dpid=dpid, inNamespace=True)
        for one, other, data in self.fabric.graph.edges(data=True):
            if one in self._part.vertices and other in self._part.vertices:
                self._link(one, other, data)
        for number, tunnel in enumerate(self._part.tunnels):
            self._tunnel(number, tunnel)
        self.mininet.build()
        for node in self._vertices():
            self._run_record.add_process(node.pid)
        for name in hosts:
            self._teach_neighbours(name)
        self._run_scripts()

    def _run_scripts(self) -> None:
        """Make every node set itself up; raises TopologyError with a tool's output if it fails."""
        for node in self._vertices():
            script = self.directory / f"{node.name}.setup"
            script.write_text("\n".join(node.setup) + "\n")
            node.sendCmd(f"sh {script}")
        output = {node.name: node.waitOutput().strip() for node in self._vertices()}
        for name, words in output.items():
            if words:
                raise TopologyError(f"{name} could not be set up: {words}")

    def _link(self, one: str, other: str, data: dict[str, Any]) -> None:
        """Add a veth pair without offloads: a P4 switch would see checksums that no hardware fills in.

        Hosts merge bursts of received datagrams (GRO), which saves them most of their CPU time.
        """
        from mininet.link import Link

        from topologies.mininet_nodes import ShapedInterface

        (name1, parameters1), (name2, parameters2) = (self._end(name, data) for name in (one, other))
        self.mininet.addLink(
            one,
            other,
            intfName1=name1,
            intfName2=name2,
            params1=parameters1,
            params2=parameters2,
            cls=Link,
            cls1=ShapedInterface,
            cls2=ShapedInterface,
        )

    def _tunnel(self, number: int, tunnel: Tunnel) -> None:
        """Make this machine's end of a link to another server."""
        from topologies.mininet_nodes import ShapedInterface

        node = self.mininet[tunnel.vertex]
        name, parameters = self._end(tunnel.vertex, self.fabric.graph.edges[tunnel.vertex, tunnel.peer])
        for command in tunnel.commands(f"weir{os.getpid() % 10**6}t{number}", name, node.pid):
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                raise TopologyError(
                    f"the tunnel from {tunnel.vertex} to {tunnel.peer} on {tunnel.remote} could not be made "
                    f"({command}: {done.stderr.strip()}): load the kernel's module vxlan (modprobe vxlan)"
                )
        ShapedInterface(name, node=node, moveIntfFn=lambda *_: None, **parameters)  # it exists already

    def _end(self, name: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return name and parameters of an interface: a host's only one, or a switch's at that link."""
        is_host = name in self.fabric.hosts
        interface = f"{name}-eth0" if is_host else f"{name}-eth{data['ports'][name]}"
        shape = self._shape(data["rate_bit_s"], is_host)
        return interface, {"gro": is_host, "shape": shape, "txo": False, "rxo": False}

    def _shape(self, rate_bit_s: float, is_host: bool) -> Shape:
        """Return how the end of a link at a host or at a switch sends."""
        queue_packets = None if is_host else self._queue_packets
        return Shape(rate_bit_s, self._delay_ms, queue_packets, self._mtu_bytes, self.fabric.requests_first)

    def _teach_neighbours(self, name: str) -> None:
        """Add static ARP entries to a host: the P4 program forwards only IPv4."""
        everyone = [e for e in self.fabric.hosts.values() if e.name != name]
        everyone += [self.fabric.controller(switch) for switch in self.fabric.switches]
        entries = "".join(f"neigh replace {e.ipv4} lladdr {e.mac} dev {name}-eth0\n" for e in everyone)
        batch = self.directory / f"{name}.neighbours"
        batch.write_text(entries)
        self.mininet[name].setup.append(f"ip -batch {batch}")

    def _wait_serving(self, switch: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.switch_processes[switch].poll() is None:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as tried:
                tried.connect(self.address(switch).removeprefix("unix:"))
                return
            time.sleep(_POLL_S)
        output = self.switch_log(switch).read_text(errors="replace")[-2000:].strip()
        raise EngineError(
            f"switch {switch} ({self.engine.name}) did not start:\n{output or '(it said nothing)'}"
        )

    def _stop_mininet(self) -> None:
        for node in self._vertices():
            node.terminate()

    def _vertices(self) -> list[Node]:
        return [*self.mininet.hosts, *self.mininet.switches]


def _counted(net_dev: str) -> list[tuple[str, tuple[int, int]]]:
    """Return (interface, (bytes received, bytes sent)) from the text of /proc/PID/net/dev.

    The text begins with two lines of titles.
    """
    found = []
    for line in net_dev.splitlines()[2:]:
        interface, _, counters = line.partition(":")
        numbers = counters.split()
        found.append((interface.strip(), (int(numbers[0]), int(numbers[8]))))
    return found


def _queue_drops(node: Node) -> int:
    """Return the packets dropped by the outermost queues, which count what is dropped within them.

    tc's JSON is read, because its text is for people: Debian 13's contains colours.
    """
    queues = json.loads(node.cmd("tc -s -j qdisc show"))
    return sum(queue["drops"] for queue in queues if queue.get("root"))
