"""A Mininet network started from a fabric: hosts and switches in namespaces, links at their rates.

Every switch has a namespace of its own, so two networks on one machine don't meet; P4Runtime is
served on a Unix socket, which reaches across namespaces.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

from mininet.link import Link, TCIntf
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node, Switch

from topologies.certificates import Certificates, make_certificates
from topologies.engines import Engine
from topologies.errors import EngineError, TopologyError
from topologies.fabric import Fabric
from topologies.forkserver import ForkServer
from topologies.forkserver.client import ForkedProcess
from topologies.remains import Remains

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 3.0
_LOOK_S = 0.02
MBIT = 1e6
LARGEST_FRAME_BYTES = 1514
FORKED = {
    "hostlib.worker": "hostlib.worker",
    "hostlib.storage": "hostlib.storage",
    "v1model": "v1model.p4runtime.server",
}
"""Programs that a network runs many times, and what to import for them."""
BURST_S = 0.001
"""What a link that was idle may send at once: a burst of fixed size would be much time on a slow link."""
_NO_IPV6 = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"
_GUARD = ("setpriv", "--pdeathsig", "TERM", "--")  # ends the process when we die


def burst_bytes(rate_bit_s: float) -> int:
    """What a link of this rate lets through at once after it was idle."""
    return max(2 * LARGEST_FRAME_BYTES, round(rate_bit_s * BURST_S / 8))


Process = subprocess.Popen[bytes] | ForkedProcess
_AnyProcess = TypeVar("_AnyProcess", subprocess.Popen[bytes], ForkedProcess)


class _ShapedInterface(TCIntf):  # type: ignore[misc] # mininet ships no types
    """TCIntf for any rate, and with an error where it would be silent."""

    def bwCmds(self, bw: float | None = None, **_: Any) -> tuple[list[str], str]:  # mininet's name
        """HTB as mininet does it, beyond 1 Gbit/s too; with a quantum, or the kernel warns of its guess."""
        if bw is None:
            return [], " root "
        burst = burst_bytes(bw * MBIT)
        limits = f"rate {bw:f}Mbit burst {burst} cburst {burst} quantum {LARGEST_FRAME_BYTES}"
        qdisc = "%s qdisc add dev %s root handle 5:0 htb default 1"
        rate = f"%s class add dev %s parent 5:0 classid 5:1 htb {limits}"
        return [qdisc, rate], " parent 5:1 "

    def config(
        self, bw: float | None = None, delay: str | None = None, *,
        gro: bool = False, txo: bool = True, rxo: bool = True, queue_packets: int | None = None, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """As TCIntf's, but for later (`_Scripted`)."""
        settings = {"gro": gro, "tx": txo, "rx": rxo}
        offloads = " ".join(f"{name} {'on' if on else 'off'}" for name, on in settings.items())
        self.node.setup += [
            f"ip link set dev {self.name} up",
            f"ethtool -K {self.name} {offloads} >/dev/null",
        ]
        shaping, parent = self.bwCmds(bw=bw)
        delays, _parent = self.delayCmds(delay=delay, parent=parent)
        self.node.setup += [command % ("tc", self.name) for command in (*shaping, *delays)]
        if queue_packets is not None:
            self.node.setup.append(f"tc qdisc add dev {self.name} {parent} pfifo limit {queue_packets}")
        return {}


class _Scripted:
    """A node whose commands are gathered and run as one script: each by itself would be a round trip to
    the node's shell, and there are many. The scripts of all nodes run at the same time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.setup = ["set -e", _NO_IPV6]
        super().__init__(*arguments, **options)


class _Host(_Scripted, Host):  # type: ignore[misc] # mininet ships no types
    """A host with one interface."""

    def config(self, mac: str, ip: str, **_: Any) -> dict[str, Any]:
        """Address the interface."""
        interface = self.defaultIntf()
        interface.mac, (interface.ip, interface.prefixLen) = mac, ip.split("/")
        own = f"dev {interface.name}"
        self.setup += [
            "ip link set dev lo up",
            f"ip link set {own} address {mac}",
            f"ip address add {ip} {own}",
        ]
        return {}


class _NamespaceSwitch(_Scripted, Switch):  # type: ignore[misc] # mininet ships no types
    """A namespace with ports: forwarding is done by the engine's process, not by the kernel."""

    def start(self, controllers: Any) -> None:
        """Nothing to do: `Network.start_switches` does it."""


def check_root() -> None:
    """Raise TopologyError, in one line, when not root."""
    if os.geteuid() != 0:
        raise TopologyError(
            "network namespaces need root: use sudo make ... (without root: make test runs all other tests, "
            "make policies replays traces, and the embedded switch works as a library)"
        )


class Network:
    """A running network. Use as a context manager: leaving it removes all that it started."""

    def __init__(
        self,
        fabric: Fabric,
        engine: Engine,
        delay_ms: float = 0.0,
        secure: bool = False,
        queue_packets: int | None = None,
    ) -> None:
        """`secure`: P4Runtime over TLS, with certificates on both sides, made for this network.
        `queue_packets`: what waits in front of a link at a switch, at most; else the kernel's 1000."""
        check_root()
        if delay_ms:
            _require_netem(delay_ms)
        self.fabric, self.engine = fabric, engine
        self._delay = f"{delay_ms}ms" if delay_ms else None
        self._secure = secure
        self._queue_packets = queue_packets
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
            self._remains = self._stack.enter_context(Remains(self.directory))
            self._forks = self._stack.enter_context(ForkServer(FORKED.values(), self.popen_here))
            self._build()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        end_processes(self._processes)
        self._stack.close()

    def address(self, switch: str) -> str:
        """Where `switch` serves P4Runtime, as gRPC spells it."""
        return f"unix:{self.directory / switch}.sock"

    def switch_log(self, switch: str) -> Path:
        """What its processes say, one after the other."""
        return self.directory / f"{switch}.log"

    def interfaces(self, switch: str) -> list[tuple[int, str]]:
        """(port, interface) of a switch."""
        return [(port.number, f"{switch}-eth{port.number}") for port in self.fabric.ports(switch)]

    def popen(self, host: str, command: Sequence[str], **options: Any) -> Process:
        """Start a process in the namespace of `host`; it is ended with the network, or with us.

        One of FORKED's programs is forked from a process that has imported it.
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
        self._remains.add_process(process.pid)
        self._stack.callback(end_process, process)
        self._processes.append(process)
        return process

    def start_switches(self) -> None:
        """Start every switch's process and wait until it serves P4Runtime."""
        for switch in self.fabric.switches:
            device_id = self.fabric.device_id(switch)
            command = self.engine.command(
                device_id, self.interfaces(switch), self.address(switch), self.certificates
            )
            log = self._stack.enter_context(self.switch_log(switch).open("ab"))
            process = self.popen(switch, command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.switch_processes[switch] = process
        for switch in self.fabric.switches:
            self._wait_serving(switch)

    def stop_switches(self) -> None:
        """End the switches' processes; they can be started again."""
        end_processes(self.switch_processes.values())
        self.switch_processes.clear()
        for switch in self.fabric.switches:
            (self.directory / f"{switch}.sock").unlink(missing_ok=True)

    def transmitted_bytes(self, host: str) -> int:
        """Bytes that left the host's interface since it was made."""
        counter = f"/sys/class/net/{host}-eth0/statistics/tx_bytes"
        return int(self.mininet[host].cmd("cat", counter).strip())

    def received_packets(self, host: str) -> int:
        """Packets that came to the host's interface since it was made."""
        counter = f"/sys/class/net/{host}-eth0/statistics/rx_packets"
        return int(self.mininet[host].cmd("cat", counter).strip())

    def link_drops(self) -> int:
        """Packets that the queues in front of all links dropped."""
        return sum(_queue_drops(self.mininet[name]) for name in self.fabric.graph)

    def _build(self) -> None:
        setLogLevel("error")
        self.mininet = Mininet(controller=None, build=False, cleanup=False, waitConnected=False)
        self._stack.callback(self._stop_mininet)
        for name, endpoint in self.fabric.hosts.items():
            self.mininet.addHost(name, cls=_Host, ip=f"{endpoint.ipv4}/8", mac=endpoint.mac)
        for switch in self.fabric.switches:
            dpid = f"{self.fabric.device_id(switch):x}"
            self.mininet.addSwitch(switch, cls=_NamespaceSwitch, dpid=dpid, inNamespace=True)
        for one, other, data in self.fabric.graph.edges(data=True):
            self._link(one, other, data)
        self.mininet.build()
        for node in self._vertices():
            self._remains.add_process(node.pid)
        for name in self.fabric.hosts:
            self._teach_neighbours(name)
        self._run_scripts()

    def _run_scripts(self) -> None:
        """Have every node set itself up; raises TopologyError with a tool's words when it refuses."""
        for node in self._vertices():
            script = self.directory / f"{node.name}.setup"
            script.write_text("\n".join(node.setup) + "\n")
            node.sendCmd(f"sh {script}")
        said = {node.name: node.waitOutput().strip() for node in self._vertices()}
        for name, words in said.items():
            if words:
                raise TopologyError(f"{name} could not be set up: {words}")

    def _link(self, one: str, other: str, data: dict[str, Any]) -> None:
        """veth pair; offloads off, because a P4 switch would see the checksums that hardware never adds.

        Hosts merge bursts of datagrams on receipt (GRO), which saves them most of their CPU time.
        """
        ends = []
        for name in (one, other):
            is_host = name in self.fabric.hosts
            interface = f"{name}-eth0" if is_host else f"{name}-eth{data['ports'][name]}"
            queue_packets = None if is_host else self._queue_packets
            ends.append((interface, {"gro": is_host, "queue_packets": queue_packets}))
        (name1, parameters1), (name2, parameters2) = ends
        shared = {"bw": data["rate_bit_s"] / MBIT, "txo": False, "rxo": False, "delay": self._delay}
        self.mininet.addLink(
            one,
            other,
            intfName1=name1,
            intfName2=name2,
            params1={**shared, **parameters1},
            params2={**shared, **parameters2},
            cls=Link,
            cls1=_ShapedInterface,
            cls2=_ShapedInterface,
        )

    def _teach_neighbours(self, name: str) -> None:
        """Static ARP: the P4 program forwards IPv4 only."""
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
            time.sleep(_LOOK_S)
        said = self.switch_log(switch).read_text(errors="replace")[-2000:].strip()
        raise EngineError(
            f"switch {switch} ({self.engine.name}) did not start:\n{said or '(it said nothing)'}"
        )

    def _stop_mininet(self) -> None:
        for node in self._vertices():
            node.terminate()

    def _vertices(self) -> list[Node]:
        return [*self.mininet.hosts, *self.mininet.switches]


def end_processes(processes: Iterable[Process]) -> None:
    """As `end_process`, all at the same time."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        end_process(process)


def end_process(process: Process) -> None:
    """SIGTERM, and SIGKILL where that does not help."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        _close(stream)


def _close(stream: IO[bytes] | None) -> None:
    with contextlib.suppress(OSError):
        if stream is not None:
            stream.close()


def _queue_drops(node: Node) -> int:
    """Of the outermost queues, which count what is dropped within them."""
    shown = node.cmd("tc -s qdisc show").replace(",", " ").split("qdisc ")
    outermost = [one.split() for one in shown if " root " in one]
    return sum(int(words[words.index("(dropped") + 1]) for words in outermost)


def _require_netem(delay_ms: float) -> None:
    """Raise TopologyError where the kernel has no netem: a delay is refused, never left out."""
    name = f"weir{os.getpid()}"
    with _dummy_interface(name):
        tried = subprocess.run(
            ["tc", "qdisc", "add", "dev", name, "root", "netem", "delay", "1ms"],
            capture_output=True,
            text=True,
            check=False,
        )
    if tried.returncode != 0:
        raise TopologyError(
            f"a link delay of {delay_ms:g} ms needs the kernel's netem, which is not here "
            f"(tc: {tried.stderr.strip()}). Leave the delay out, or load sch_netem"
        )


@contextlib.contextmanager
def _dummy_interface(name: str) -> Iterator[None]:
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "del", name], check=True)
