"""A switch as a process with veth ports whose other ends the test holds, and a controller's worker for it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import time
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any, Final

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from controller.addressing import Mac
from controller.block_id import key_of, tenant_of
from controller.config import Config, Host, PoolSize, Port, Route, SwitchConfig, Thresholds
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from topologies.engines import Artifacts, Engine

NODE, OTHER_NODE, STORE = 1, 2, 3
FRAGMENTS: Final = 2
CONTENT: Final = 0xC0_FFEE
TENANT: Final = 5
ENTRIES: Final = 8
DEFINES: Final = {"POOL_BLOCKS": ENTRIES, "POOL_SLOTS": ENTRIES * FRAGMENTS}
TIMEOUT_S: Final = 60.0
CONTROLLER = Host(Mac.parse("02:00:00:01:00:01"), IPv4Address("10.255.0.1"))


def host(port: int) -> Host:
    return Host(Mac(0x020000000000 + port), IPv4Address(f"10.0.0.{port}"))


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll a condition; fail when it does not come true."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {TIMEOUT_S:g} s for: {what}"
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def message(op: str, block: bytes, fragment: int = 0, **fields: Any) -> KV:
    """About a block, by its ID."""
    fields = {"tenant": tenant_of(block), "key": key_of(block), "fragments": FRAGMENTS, **fields}
    return KV(op=op, frag=fragment, **fields)


def value(block: bytes, fragment: int = 0) -> bytes:
    """The content of a fragment, 512 bytes."""
    return (block + bytes([fragment])) * 26 + bytes(18)


@dataclass
class LiveSwitch:
    """Start and kill it as often as needed; the ports stay."""

    engine: Engine
    artifacts: Artifacts
    log: Path
    address: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    process: subprocess.Popen[bytes] | None = None
    sockets: dict[int, socket.socket] = field(default_factory=dict)

    def start(self) -> None:
        interfaces = [(port, _veth(port, "s")) for port in self.sockets]
        with self.log.open("ab") as log:
            command = self.engine.command(1, interfaces, self.address)
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def send(self, source: int, destination: IPv4Address, kv: Packet) -> None:
        """A message from the host at a port."""
        ethernet = Ether(src=str(host(source).mac), dst="02:00:00:00:ff:ff")
        ip = IP(src=str(host(source).ipv4), dst=str(destination))
        self.sockets[source].send(bytes(ethernet / ip / UDP(sport=wire.KV_PORT, dport=wire.KV_PORT) / kv))

    def receive(self, port: int, op: int) -> wire.Message:
        """The next message with an operation that arrives at the host of a port; others are skipped."""
        return self.receive_first((port, op))[2]

    def receive_first(self, *awaited: tuple[int, int]) -> tuple[int, IPv4Address, wire.Message]:
        """Port, sender and message of the first that is awaited, as (port, operation); others are skipped."""
        deadline_s = time.monotonic() + TIMEOUT_S
        ports = {self.sockets[port]: port for port, _ in awaited}
        while (left_s := deadline_s - time.monotonic()) > 0:
            for readable in select.select(list(ports), [], [], left_s)[0]:
                frame = Ether(readable.recv(2048))
                if KV in frame and (ports[readable], frame[KV].op) in awaited:
                    message = wire.decode(bytes(frame[UDP].payload))
                    return ports[readable], IPv4Address(frame[IP].src), message
        raise AssertionError(f"waited {TIMEOUT_S:g} s for one of (port, operation): {awaited}")

    def ask(self, key: bytes, fragment: int = 0, source: int = NODE, **fields: Any) -> None:
        """A GET from a node to the store."""
        self.send(source, host(STORE).ipv4, message("GET", key, fragment, **fields))

    def fetch(self, key: bytes) -> None:
        """A node fetches all of a block; what the pool does not hold yet, the test answers as the store."""
        for fragment in range(FRAGMENTS):
            self.ask(key, fragment, flags=wire.FLAG_RETRY)
            port, _, _ = self.receive_first((NODE, wire.OP_VALUE), (STORE, wire.OP_GET))
            if port == STORE:
                self.reply(key, fragment)
                self.receive(NODE, wire.OP_VALUE)

    def reply(self, key: bytes, fragment: int, to: IPv4Address | None = None, **fields: Any) -> None:
        """The store's VALUE."""
        kv = message("VALUE", key, fragment, content=CONTENT, **fields) / value(key, fragment)
        self.send(STORE, to or host(NODE).ipv4, kv)

    def put(self, key: bytes, fragment: int = 0, **fields: Any) -> None:
        """The node's PUT."""
        kv = message("PUT", key, fragment, content=CONTENT, **fields) / value(key, fragment)
        self.send(NODE, host(STORE).ipv4, kv)

    def acknowledge(self, key: bytes, flags: int) -> None:
        """The store's PUT_ACK of the last fragment."""
        self.send(
            STORE, host(NODE).ipv4, message("PUT_ACK", key, FRAGMENTS - 1, content=CONTENT, flags=flags)
        )


@contextlib.contextmanager
def live_switch(engine: Engine, artifacts: Artifacts, log: Path) -> Iterator[LiveSwitch]:
    """A running switch, gone afterwards with its interfaces."""
    switch = LiveSwitch(engine, artifacts, log)
    try:
        for port in (NODE, OTHER_NODE, STORE):
            switch.sockets[port] = _open_port(port)
        switch.start()
        yield switch
    finally:
        switch.kill()
        for port, opened in switch.sockets.items():
            opened.close()
            subprocess.run(["ip", "link", "delete", _veth(port, "h")], check=False)


def _open_port(port: int) -> socket.socket:
    host_end, switch_end = _veth(port, "h"), _veth(port, "s")
    subprocess.run(["ip", "link", "add", host_end, "type", "veth", "peer", "name", switch_end], check=True)
    for name in (host_end, switch_end):
        subprocess.run(["ip", "link", "set", name, "addrgenmode", "none", "up"], check=True)
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    opened.bind((host_end, 0))
    return opened


def _veth(port: int, end: str) -> str:
    return f"wc{os.getpid()}{end}{port}"


def switch_config(switch: LiveSwitch) -> SwitchConfig:
    ports = (NODE, OTHER_NODE, STORE)
    return SwitchConfig(
        name="s1",
        device_id=1,
        grpc_address=switch.address,
        p4info=switch.artifacts.p4info,
        device_config=switch.artifacts.device_config,
        controller=CONTROLLER,
        ports=tuple(
            Port(port, "store" if port == STORE else "node", host(port), tenants=(TENANT,)) for port in ports
        ),
        routes=tuple(Route(IPv4Network(host(port).ipv4), port, host(port).mac) for port in ports),
        pool=PoolSize(ENTRIES, ENTRIES * FRAGMENTS, FRAGMENTS),
        stores=(host(STORE).ipv4,),
    )


def config(switch: LiveSwitch, policy: str = "lru", **thresholds: Any) -> Config:
    """Of a switch whose whole pool is the policy's, as far as nothing else is said."""
    return Config(
        (switch_config(switch),), policy=policy, thresholds=Thresholds(**{"eviction": "drop", **thresholds})
    )


def serve_block(switch: LiveSwitch, key: bytes) -> None:
    """Fetch a block that is in the pool, then again: all of it comes from there, and is right."""
    switch.fetch(key)
    assert_served(switch, key)


def assert_served(switch: LiveSwitch, key: bytes) -> None:
    """All fragments of a block come from the pool."""
    for fragment in range(FRAGMENTS):
        switch.ask(key, fragment)
        reply = switch.receive(NODE, wire.OP_VALUE)
        assert reply.flags & wire.FLAG_FROM_POOL
        assert bytes(reply.value) == value(key, fragment)
