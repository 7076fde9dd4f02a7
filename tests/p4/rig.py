"""A switch with the pool's program, filled in as the controller does it, and packets to send."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV
from v1model.backend import CompiledProgram
from v1model.dataplane import DigestConfig, DigestList, MeterConfig, Replica, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.switch import Switch

NODES = (1, 2, 3)
STORE, OTHER_STORE, THIRD_STORE = STORES = (9, 10, 11)
FRAGMENTS = 4
TENANT, FOREIGN_TENANT = 5, 6
CONTENT, OTHER_CONTENT = 0xC0_FFEE, 0xBEEF
TAG = b"tag of 16 bytes."
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
    return blake2b(key + bytes([fragment])).digest() * (wire.VALUE_BYTES // 64)


def _place(tenant: int, key: bytes) -> tuple[KeyMatch, KeyMatch]:
    return KeyMatch(tenant), KeyMatch(int.from_bytes(key, "big"))


class Rig:
    """`send` returns what left the switch as (port, Scapy packet), in order of ports; not the CPU port's."""

    def __init__(self, compiled: CompiledProgram) -> None:
        self.switch = Switch(compiled, cpu_port=p4.CPU_PORT)
        self.now_us = 1_000_000
        self.next_generation = 1
        self._roles: set[int] = set()
        self.to_cpu: list[tuple[int, Packet]] = []  # (ingress port, packet) of what went to the controller
        for node in NODES:
            self.set_role(node, p4.ROLE_REQUEST)
            self.allow(node, TENANT)
        for store in STORES:
            self.set_role(store, p4.ROLE_REPLY | p4.ROLE_REQUEST)
            self.store_at(store, store)
        self.set_role(p4.CPU_PORT, p4.ROLE_CONTROL | p4.ROLE_REQUEST, "0.0.0.0")
        for port in (*NODES, *STORES):
            route = KeyMatch(number(ip(port)), prefix_length=32)
            self._insert(p4.ROUTES, route, "ingress.routing.forward", number(mac(port)), port)
            self._insert(
                p4.HOSTS, KeyMatch(port), "egress.waiters.address", number(mac(port)), number(ip(port))
            )
        own = KeyMatch(number(CONTROLLER_IP), prefix_length=32)
        self._insert(p4.ROUTES, own, "ingress.routing.forward", number(mac(0xFE)), p4.CPU_PORT)
        group = [Replica(port) for port in (*NODES, *STORES)]
        self.switch.set_multicast_group(p4.MULTICAST_WAITERS, group)
        self.digest_config = DigestConfig(max_list_size=1)
        self.switch.set_digest("hot_miss_t", self.digest_config)
        self.report_from(2)

    def _insert(self, table: str, match: KeyMatch, action: str, *arguments: int) -> None:
        self.switch.insert(TableEntry(table, (match,), ActionCall(action, arguments)))

    def set_role(self, port: int, role: int, address: str | None = None) -> None:
        """What may come from a port, and as whom; replaces what was there."""
        call = ActionCall("ingress.roles.set_role", (role, number(address or ip(port))))
        entry = TableEntry(p4.PORT_ROLES, (KeyMatch(port),), call)
        if port in self._roles:
            self.switch.modify(entry)
        else:
            self.switch.insert(entry)
        self._roles.add(port)

    def allow(self, port: int, tenant: int) -> None:
        """A tenant that the host behind a port belongs to."""
        for table in (p4.PORT_TENANTS, p4.RECEIVERS):
            match = (KeyMatch(port), KeyMatch(tenant))
            self.switch.insert(TableEntry(table, match, ActionCall("NoAction", ())))

    def store_at(self, store: int, port: int) -> None:
        """Where a storage node is, by its number."""
        for table in p4.STORES:
            self._insert(table, KeyMatch(store), table.replace("stores", "leads_to"), port)

    def move_store(self, store: int, port: int) -> None:
        """A storage node is behind another port after all."""
        for table in p4.STORES:
            call = ActionCall(table.replace("stores", "leads_to"), (port,))
            self.switch.modify(TableEntry(table, (KeyMatch(store),), call))

    def host_at(self, port: int, host: int | None = None) -> None:
        """One more port with a host: by default the one of the port's own address."""
        host = host or port
        self._insert(p4.HOSTS, KeyMatch(port), "egress.waiters.address", number(mac(host)), number(ip(host)))
        group = self.switch.multicast_groups()[p4.MULTICAST_WAITERS]
        self.switch.set_multicast_group(p4.MULTICAST_WAITERS, [*group, Replica(port)])

    def limit(self, meter: str, port: int, packets: int) -> None:
        """Let a port have so many packets, and then hardly any."""
        self.switch.set_meter(meter, port, MeterConfig(1, packets, 1, packets))

    def report_from(self, count: int) -> None:
        call = ActionCall("ingress.misses.report_from", (count,))
        self.switch.set_default("ingress.misses.settings", call)

    def merging(self, on: bool) -> None:
        self.switch.set_default(
            "ingress.in_flight.settings", ActionCall("ingress.in_flight.merge", (int(on),))
        )

    def install(self, key: bytes, base_slot: int = 0, fragments: int = FRAGMENTS, tenant: int = 0) -> int:
        """Give a block slots; the generation it got."""
        generation = self.next_generation
        self.next_generation += 1
        call = ActionCall("ingress.index.locate", (base_slot, generation, fragments))
        self.switch.insert(TableEntry(p4.BLOCKS, _place(tenant, key), call))
        return generation

    def remove(self, key: bytes, tenant: int = 0) -> None:
        self.switch.delete(TableEntry(p4.BLOCKS, _place(tenant, key), None))

    def hits(self, base_slot: int = 0) -> int:
        """Fragments that the pool served of the block that lies there."""
        return self.switch.counter(p4.BLOCK_HITS, base_slot).packets

    def send(self, port: int, packet: Packet | bytes, after_us: int = 1) -> list[tuple[int, Packet]]:
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

    def frame(self, source: int, to: int | str, payload: Packet) -> Packet:
        address = to if isinstance(to, str) else ip(to)
        mac_source = mac(0xFE) if source == p4.CPU_PORT else mac(source)
        ip_source = CONTROLLER_IP if source == p4.CPU_PORT else ip(source)
        headers = Ether(src=mac_source, dst="02:00:00:00:00:aa") / IP(src=ip_source, dst=address)
        return headers / UDP(sport=wire.KV_PORT, dport=wire.KV_PORT) / payload

    def get(self, node: int, key: bytes, fragment: int = 0, home: int = STORE, **fields: int) -> Packet:
        """A GET as a reader's that knows the length of the block, and takes any write of it."""
        fields = {"frag": fragment, "fragments": FRAGMENTS, **fields}
        return self.frame(node, home, KV(op=wire.OP_GET, key=key, **fields))

    def value(
        self, node: int | str, key: bytes, fragment: int = 0, home: int = STORE, **fields: int
    ) -> Packet:
        header = {"frag": fragment, "fragments": FRAGMENTS, "content": CONTENT, "tag": TAG, **fields}
        return self.frame(home, node, KV(op=wire.OP_VALUE, key=key, **header) / value_of(key, fragment))

    def not_found(
        self, node: int | str, key: bytes, fragment: int = 0, home: int = STORE, **fields: int
    ) -> Packet:
        fields = {"frag": fragment, "fragments": FRAGMENTS, **fields}
        return self.frame(home, node, KV(op=wire.OP_NOT_FOUND, key=key, **fields))

    def put(self, node: int, key: bytes, homes: Sequence[int], fragment: int = 0, **fields: int) -> Packet:
        numbered = {f"home_{place}": home for place, home in enumerate(homes, 1)}
        header = {
            "frag": fragment,
            "fragments": FRAGMENTS,
            "content": CONTENT,
            "tag": TAG,
            **numbered,
            **fields,
        }
        payload = KV(op=wire.OP_PUT, key=key, **header) / value_of(key, fragment)
        return self.frame(node, homes[0], payload)

    def put_ack(
        self, node: int | str, key: bytes, fragment: int = 0, home: int = STORE, **fields: int
    ) -> Packet:
        """By default a home's that made the block of what was put."""
        made = wire.FLAG_HELD | wire.FLAG_CREATED
        fields = {"frag": fragment, "fragments": FRAGMENTS, "content": CONTENT, "flags": made, **fields}
        return self.frame(home, node, KV(op=wire.OP_PUT_ACK, key=key, **fields))

    def deleted(self, node: int | str, key: bytes, home: int = STORE, **fields: int) -> Packet:
        """A storage node's answer that it has forgotten a write."""
        fields = {"fragments": FRAGMENTS, "content": CONTENT, **fields}
        return self.frame(home, node, KV(op=wire.OP_DELETED, key=key, **fields))

    def control(self, op: int, key: bytes, fragment: int = 0, to: int = STORE, **fields: int) -> Packet:
        fields = {"frag": fragment, "fragments": FRAGMENTS, **fields}
        return self.frame(p4.CPU_PORT, to, KV(op=op, key=key, **fields))

    def ask(self, node: int, key: bytes, fragment: int = 0, **fields: int) -> wire.Message | None:
        """What the pool answers a node's GET; None if it does not."""
        sent = self.send(node, self.get(node, key, fragment, **fields))
        return wire.decode(bytes(sent[0][1][UDP].payload)) if ports(sent) == [node] else None

    def fill(self, key: bytes, fragment: int = 0, **fields: int) -> None:
        """Have a value fetched that fills its slot on its way."""
        asked = {name: value for name, value in fields.items() if name in ("tenant", "home")}
        self.send(NODES[0], self.get(NODES[0], key, fragment, flags=wire.FLAG_RETRY, **asked))
        self.send(STORE, self.value(NODES[0], key, fragment, **fields))


def ports(sent: Sequence[tuple[int, Packet]]) -> list[int]:
    """Where packets left the switch."""
    return [port for port, _ in sent]


def checksums_right(packet: Packet) -> bool:
    """Whether IPv4's and UDP's checksums are those that Scapy computes anew."""
    anew = packet.copy()
    del anew[IP].chksum
    del anew[UDP].chksum
    anew = Ether(bytes(anew))
    return (anew[IP].chksum, anew[UDP].chksum) == (packet[IP].chksum, packet[UDP].chksum)
