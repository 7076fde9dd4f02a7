"""What an intruder sends: frames of each attack, under keys that others use and as who it is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from experiments.faults.cluster import TENANT
from hostlib import wire
from topologies.fabric import Endpoint, Fabric

FRAMES = 256
"""Of each attack, sent in turn."""
HOT_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Who sends, and at whose expense."""

    intruder: Endpoint
    victim: Endpoint
    store: Endpoint
    controller: Endpoint

    @classmethod
    def of(cls, fabric: Fabric) -> Place:
        """The last node sends."""
        intruder = fabric.hosts[fabric.nodes[-1]]
        controller = fabric.controller_of(intruder.name)
        return cls(intruder, fabric.hosts[fabric.nodes[0]], fabric.hosts[fabric.stores[0]], controller)


Make = Callable[[Place, random.Random, int], Raw]


def frames(attack: str, fabric: Fabric, seed: int) -> list[str]:
    """In hexadecimal."""
    place, draws = Place.of(fabric), random.Random(f"{seed} {attack}")
    return [bytes(ATTACKS[attack](place, draws, at)).hex() for at in range(FRAMES)]


def hot_key(at: int) -> bytes:
    """That of a block which all nodes read (`experiments.faults.load`)."""
    return blake2b(b"hot %d" % (at % HOT_BLOCKS), digest_size=16).digest()


def _packet(place: Place, to: Endpoint, payload: bytes, source: Endpoint | None = None, port: int = 0) -> Raw:
    sender = source or place.intruder
    return (
        Ether(src=place.intruder.mac, dst=to.mac)
        / IP(src=str(sender.ipv4), dst=str(to.ipv4))
        / UDP(sport=port or wire.KV_PORT, dport=port or wire.KV_PORT)
        / Raw(payload)
    )


def _get(key: bytes, flags: int = 0, tenant: int = wire.TENANT_PUBLIC) -> bytes:
    return wire.encode(wire.Message(wire.OP_GET, key, 0, 0, flags, tenant=tenant))


def _gets(place: Place, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, _get(draws.randbytes(wire.KEY_BYTES)))


def _foreign_gets(place: Place, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, _get(hot_key(at), tenant=TENANT))


def _puts(place: Place, draws: random.Random, at: int) -> Raw:
    """Garbage under keys that others use, as their tenant."""
    garbage = draws.randbytes(wire.VALUE_BYTES)
    message = wire.Message(
        wire.OP_PUT, hot_key(at), 0, 1, tenant=TENANT, content=1 + draws.getrandbits(63), tag=bytes(16),
        value=garbage,
    )  # fmt: skip
    return _packet(place, place.store, wire.encode(message))


def _values(place: Place, draws: random.Random, at: int) -> Raw:
    """Answers that nobody asked this node for."""
    message = wire.Message(
        wire.OP_VALUE, hot_key(at), 0, 1, tenant=TENANT, content=1 + draws.getrandbits(63), tag=bytes(16),
        value=draws.randbytes(wire.VALUE_BYTES),
    )  # fmt: skip
    return _packet(place, place.victim, wire.encode(message), source=place.store)


def _subscribes(place: Place, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, _get(draws.randbytes(wire.KEY_BYTES), wire.FLAG_SUBSCRIBE))


def _malformed(place: Place, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, draws.randbytes(draws.randrange(1, 700)))


def _plain(place: Place, draws: random.Random, at: int) -> Raw:
    """To the controller's own address, which is its CPU port."""
    return _packet(place, place.controller, bytes(64), port=9)


def _spoofed(place: Place, draws: random.Random, at: int) -> Raw:
    """As another node, whose answers they would be."""
    return _packet(place, place.store, _get(hot_key(at), tenant=TENANT), source=place.victim)


ATTACKS: dict[str, Make] = {
    "gets": _gets,
    "foreign_gets": _foreign_gets,
    "puts": _puts,
    "values": _values,
    "subscribes": _subscribes,
    "malformed": _malformed,
    "plain": _plain,
    "spoofed": _spoofed,
}
