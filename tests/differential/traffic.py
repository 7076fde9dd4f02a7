"""Packets for the pool's program: all operations, from ports that may send them and others that may not,
as they should be and damaged."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet as Frame
from scapy.packet import Raw

from controller import p4_constants as p4
from hostlib.protocol import wire
from hostlib.tools.scapy_layer import KV, VALUE_OPS
from tests.differential.pair import Packet
from tests.differential.stimulus import mutate
from tests.p4.rig import (
    CONTENT,
    CONTROLLER_IP,
    FOREIGN_TENANT,
    FRAGMENTS,
    NODES,
    OTHER_CONTENT,
    STORE,
    STORES,
    TENANT,
    Rig,
    ip,
    key_of,
)

KEYS = [key_of(f"block {number}") for number in range(8)]
# Two keys that share their first 32 bits share their pending cells.
KEYS += [KEYS[0][:4] + KEYS[1][4:], KEYS[2][:4] + KEYS[3][4:]]
FLAGS = [0] * 15 + [value for name, value in vars(wire).items() if name.startswith("FLAG_")]
GROUPS = (p4.MULTICAST_WAITERS, 7, 0)  # 7: a group that does not exist
MESSAGES = (
    wire.OP_REFUSED, wire.OP_STAT, wire.OP_FOUND, wire.OP_HELLO, wire.OP_LIST, wire.OP_KEYS, wire.OP_EXPECT,
    wire.OP_MEMBERS, wire.OP_DELETE,
)  # fmt: skip
CONTROL = (wire.OP_RECLAIM, wire.OP_FILL, wire.OP_FILL, wire.OP_PUSH)
HOSTS = (*NODES, *STORES)
QUESTIONS = 24


class Traffic:
    """`rig` is only asked for frames."""

    def __init__(self, rig: Rig, rng: random.Random) -> None:
        self._rig, self._rng = rig, rng
        # Who asked a home last, and what: nothing else is an answer.
        self._asked: deque[tuple[str, dict[str, Any]]] = deque(maxlen=QUESTIONS)
        self._kinds = [self._get] * 6 + [self._value] * 5 + [self._not_found]
        self._kinds += [self._put] * 3 + [self._put_ack, self._deleted]
        self._kinds += [self._stat] * 2 + [self._control] * 2 + [self._message, self._plain, self._odd]

    def packet(self) -> Packet:
        port, frame = self._rng.choice(self._kinds)()
        data = bytes(frame)
        if self._rng.random() < 0.2:
            data = mutate(data, self._rng)
            if self._rng.random() < 0.5:
                data = with_ipv4_checksum(data)
        if self._rng.random() < 0.04:
            port = self._rng.choice((0, *HOSTS, 63, 64, p4.CPU_PORT))
        return port, data

    def _place(self) -> dict[str, Any]:
        """Whose, key, fragment, write and flags; rarely a fragment that can't be."""
        fragments = FRAGMENTS if self._rng.random() < 0.95 else self._rng.choice((0, 1, 0xFFFF))
        return {
            "tenant": self._rng.choice((*[0] * 10, TENANT, FOREIGN_TENANT)),
            "content": self._rng.choice((*[CONTENT] * 6, OTHER_CONTENT, 0)),
            "key": self._rng.choice(KEYS + KEYS[:3] * 6),
            "fragment": self._rng.randrange(FRAGMENTS),
            "fragments": fragments,
            "flags": self._rng.choice(FLAGS),
            "sequence": self._rng.getrandbits(32),
        }

    def _get(self) -> tuple[int, Frame]:
        node, place = self._rng.choice(NODES), self._place()
        self._asked.append((ip(node), place))
        return node, self._rig.get(node, **place)

    def _stat(self) -> tuple[int, Frame]:
        """Mostly of few blocks and of any length, so that some of them are all there."""
        node, place = self._rng.choice(NODES), self._place()
        if self._rng.random() < 0.8:
            place |= {"fragments": 0, "flags": 0, "tenant": 0, "key": self._rng.choice(KEYS[:3])}
        stat = KV(op=wire.OP_STAT, frag=place.pop("fragment"), **place)
        return node, self._rig.frame(node, STORE, stat)

    def _value(self) -> tuple[int, Frame]:
        to, place = self._answer()
        if self._rng.random() < 0.1:
            place["checksum"] = self._rng.getrandbits(32)
        return STORE, self._rig.value(to, **place)

    def _not_found(self) -> tuple[int, Frame]:
        """Or there, but not to be read."""
        to, place = self._answer()
        answer = self._rig.not_found(to, **place)
        if self._rng.random() < 0.3:
            answer[KV].op, answer[KV].generation = wire.OP_REFUSED, wire.REFUSED_UNREADABLE
        return STORE, answer

    def _answer(self) -> tuple[str, dict[str, Any]]:
        """To whom, and what: mostly a home's answer to one of the last questions, often one that is answered
        already or was asked again since; sometimes to one that nobody asked, or another one did."""
        to, place = self._rng.choice([*map(ip, NODES), CONTROLLER_IP]), self._place()
        if self._asked and self._rng.random() < 0.8:
            asker, asked = self._rng.choice(self._asked)
            place = {
                **asked,
                "content": asked["content"] or CONTENT,
                "fragments": asked["fragments"] or FRAGMENTS,
            }
            if asked["flags"] == wire.FLAG_FILL:
                place["fragment"] = self._rng.randrange(FRAGMENTS)  # all of it comes
            if self._rng.random() < 0.9:
                to = asker
            if self._rng.random() < 0.1:
                place["sequence"] ^= 1
        return to, place

    def _put_ack(self) -> tuple[int, Frame]:
        """Often of a home that made the block, so that what was put counts."""
        reply = self._reply(wire.OP_PUT_ACK)
        if self._rng.random() < 0.5:
            reply[KV].flags = wire.FLAG_HELD | wire.FLAG_CREATED
        return STORE, reply

    def _deleted(self) -> tuple[int, Frame]:
        """Mostly of a whole block, from its first fragment on."""
        reply = self._reply(wire.OP_DELETED)
        if self._rng.random() < 0.8:
            reply[KV].frag = 0
        return STORE, reply

    def _reply(self, op: int) -> Frame:
        to = self._rng.choice((*NODES, CONTROLLER_IP))
        return self._rig.frame(STORE, to, self._kv(op))

    def _put(self) -> tuple[int, Frame]:
        node = self._rng.choice(NODES)
        value = self._rng.randbytes(self._rng.randrange(wire.VALUE_BYTES + 1))
        put = self._kv(wire.OP_PUT)
        put.home_1, put.home_2, put.home_3 = (self._rng.choice((0, *STORES, 200)) for _ in range(3))
        return node, self._rig.frame(node, STORE, put / value)

    def _message(self) -> tuple[int, Frame]:
        """What concerns no slot; some of it from those who may not say so."""
        op = self._rng.choice(MESSAGES)
        sender = self._rng.choice((*NODES, STORE, STORE, p4.CPU_PORT))
        value = self._payload() if op in VALUE_OPS else b""
        to = self._rng.choice((*NODES, STORE))
        return sender, self._rig.frame(sender, to, self._kv(op, generation=self._rng.randrange(7)) / value)

    def _control(self) -> tuple[int, Frame]:
        op = self._rng.choice(CONTROL)
        place = self._place() | {"flags": 0, "sequence": self._rng.choice(GROUPS)}
        if op == wire.OP_FILL:
            self._asked.append((CONTROLLER_IP, place | {"flags": wire.FLAG_FILL}))
        return p4.CPU_PORT, self._rig.control(op, **place)

    def _kv(self, op: int, **fields: int) -> KV:
        place = self._place()
        return KV(op=op, frag=place.pop("fragment"), **place, **fields)

    def _plain(self) -> tuple[int, Frame]:
        """UDP of others, at the TTL's edge, into the unknown."""
        node = self._rng.choice(HOSTS)
        to = self._rng.choice((*map(ip, HOSTS), CONTROLLER_IP, "192.0.2.1"))
        ttl = self._rng.choice((0, 1, 2, 64, 255))
        ports = UDP(sport=self._rng.choice((53, wire.KV_PORT)), dport=self._rng.choice((53, 80)))
        return node, _ethernet() / IP(src=ip(node), dst=to, ttl=ttl) / ports / self._payload()

    def _odd(self) -> tuple[int, Frame]:
        """Not UDP, not IPv4, with options, in fragments, shorter than Ethernet allows."""
        node = self._rng.choice(HOSTS)
        header = {"src": ip(node), "dst": ip(self._rng.choice(HOSTS))}
        frames = (
            _ethernet() / IP(**header) / ICMP() / self._payload(),
            _ethernet()
            / IP(**header, options=[b"\x01\x01\x01\x01"])
            / UDP(dport=wire.KV_PORT)
            / self._payload(),
            _ethernet() / IP(**header, flags="MF") / UDP(dport=wire.KV_PORT) / self._payload(),
            _ethernet() / IP(**header, frag=3, proto=17) / self._payload(),
            Ether(dst="ff:ff:ff:ff:ff:ff", type=0x0806) / self._payload(),
            Ether(type=0x86DD) / self._payload(),
            Raw(self._rng.randbytes(self._rng.randint(1, 13))),
        )
        return node, self._rng.choice(frames)

    def _payload(self) -> Raw:
        return Raw(self._rng.randbytes(self._rng.randrange(64)))


def _ethernet() -> Ether:
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:aa")


def with_ipv4_checksum(data: bytes) -> bytes:
    """So that a damaged packet gets past the check of its IPv4 header."""
    if len(data) < 34 or data[12:14] != b"\x08\x00":
        return data
    header = data[14:24] + b"\0\0" + data[26:34]
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:24] + (~total & 0xFFFF).to_bytes(2, "big") + data[26:]
