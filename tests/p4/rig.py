"""A switch with the pool's program, filled in as the controller does it, and packets to send."""

from __future__ import annotations

from hashlib import blake2b

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from controller import p4_constants as p4
from hostlib import wire
from hostlib.scapy_layer import KV
from v1model.dataplane import DigestConfig, DigestList, Replica, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.switch import Switch

NODES = (1, 2, 3)
STORE = 9
FRAGMENTS = 4
TIMEOUT_US = 200_000
CONTROLLER_IP = "10.255.0.1"


def ip(port: int) -> str:
    return f"10.0.0.{port}"


def mac(port: int) -> str:
    return f"02:00:00:00:00:{port:02x}"


def number(address: str) -> int:
    separator, base = (":", 16) if ":" in address else (".", 10)
    return int.from_bytes(bytes(int(part, base) for part in address.split(separator)), "big")


def key_of(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()


def value_of(key: bytes, fragment: int = 0) -> bytes:
    return blake2b(key + bytes([fragment])).digest() * 8


class Rig:
    """`send` returns what left the switch as (port, Scapy packet), in order of ports; not the CPU port's."""

    def __init__(self, compiled) -> None:
        self.switch = Switch(compiled, cpu_port=p4.CPU_PORT)
        self.now_us = 1_000_000
        self.next_generation = 1
        self.to_cpu: list[tuple[int, Ether]] = []  # (ingress port, packet) of what went to the controller
        for port, role in (
            *((node, p4.ROLE_REQUEST) for node in NODES),
            (STORE, p4.ROLE_REPLY),
            (p4.CPU_PORT, p4.ROLE_CONTROL | p4.ROLE_REQUEST),
        ):
            self._insert(p4.PORT_ROLES, KeyMatch(port), "ingress.roles.set_role", role)
        for port in (*NODES, STORE):
            route = KeyMatch(number(ip(port)), prefix_length=32)
            self._insert(p4.ROUTES, route, "ingress.routing.forward", number(mac(port)), port)
            self._insert(
                p4.HOSTS, KeyMatch(port), "egress.waiters.address", number(mac(port)), number(ip(port))
            )
        own = KeyMatch(number(CONTROLLER_IP), prefix_length=32)
        self._insert(p4.ROUTES, own, "ingress.routing.forward", number(mac(0xFE)), p4.CPU_PORT)
        group = [Replica(port) for port in (*NODES, STORE)]
        self.switch.set_multicast_group(p4.MULTICAST_WAITERS, group)
        self.digest_config = DigestConfig(max_list_size=1)
        self.switch.set_digest("hot_miss_t", self.digest_config)
        self.report_from(2)

    def _insert(self, table: str, match: KeyMatch, action: str, *arguments: int) -> None:
        self.switch.insert(TableEntry(table, (match,), ActionCall(action, arguments)))

    def report_from(self, count: int) -> None:
        call = ActionCall("ingress.misses.report_from", (count,))
        self.switch.set_default("ingress.misses.settings", call)

    def merging(self, on: bool) -> None:
        self.switch.set_default(
            "ingress.in_flight.settings", ActionCall("ingress.in_flight.merge", (int(on),))
        )

    def install(self, key: bytes, base_slot: int = 0, fragments: int = FRAGMENTS) -> int:
        """Give a block slots; the generation it got."""
        generation = self.next_generation
        self.next_generation += 1
        match = KeyMatch(int.from_bytes(key, "big"))
        self._insert(p4.BLOCKS, match, "ingress.index.locate", base_slot, generation, fragments)
        return generation

    def remove(self, key: bytes) -> None:
        match = KeyMatch(int.from_bytes(key, "big"))
        self.switch.delete(TableEntry(p4.BLOCKS, (match,), None))

    def send(self, port: int, packet, after_us: int = 1) -> list[tuple[int, Ether]]:
        self.now_us += after_us
        outputs = self.switch.inject(port, bytes(packet), timestamp_us=self.now_us)
        for output in outputs:
            if output.port == p4.CPU_PORT:
                ingress_port, frame = int.from_bytes(output.data[:2], "big"), output.data[2:]
                self.to_cpu.append((ingress_port, Ether(frame)))
        sent = [(output.port, Ether(output.data)) for output in outputs if output.port != p4.CPU_PORT]
        return sorted(sent, key=lambda pair: pair[0])

    def digests(self) -> list[tuple[int, ...]]:
        lists = [event for event in self.switch.wait_events(0) if isinstance(event, DigestList)]
        return [sample for one in lists for sample in one.data]

    def outcomes(self) -> dict[str, int]:
        """Packets by what became of them, without the zeros."""
        values = self.switch.counters(p4.OUTCOMES)
        return {
            name: value.packets for name, value in zip(p4.OUTCOME_NAMES, values, strict=True) if value.packets
        }

    # packets

    def frame(self, source: int, to: int | str, payload):
        address = to if isinstance(to, str) else ip(to)
        mac_source = mac(0xFE) if source == p4.CPU_PORT else mac(source)
        ip_source = CONTROLLER_IP if source == p4.CPU_PORT else ip(source)
        headers = Ether(src=mac_source, dst="02:00:00:00:00:aa") / IP(src=ip_source, dst=address)
        return headers / UDP(sport=wire.KV_PORT, dport=wire.KV_PORT) / payload

    def get(self, node: int, key: bytes, fragment: int = 0, **fields):
        fields = {"frag": fragment, "fragments": FRAGMENTS, **fields}
        return self.frame(node, STORE, KV(op=wire.OP_GET, key=key, **fields))

    def value(self, node: int | str, key: bytes, fragment: int = 0, **fields):
        fields = {"frag": fragment, "fragments": FRAGMENTS, **fields}
        return self.frame(STORE, node, KV(op=wire.OP_VALUE, key=key, **fields) / value_of(key, fragment))

    def control(self, op: int, key: bytes, fragment: int = 0, to: int = STORE, **fields):
        fields = {"frag": fragment, "fragments": FRAGMENTS, **fields}
        return self.frame(p4.CPU_PORT, to, KV(op=op, key=key, **fields))

    def fill(self, key: bytes, fragment: int = 0) -> None:
        """Have a value pass that fills its slot."""
        self.send(STORE, self.value(NODES[0], key, fragment))


def checksums_right(packet) -> bool:
    """Whether IPv4's and UDP's checksums are those that Scapy computes anew."""
    anew = packet.copy()
    del anew[IP].chksum
    del anew[UDP].chksum
    anew = Ether(bytes(anew))
    return (anew[IP].chksum, anew[UDP].chksum) == (packet[IP].chksum, packet[UDP].chksum)
