"""Frames of each attack of an intruder, with keys of others or in the name of others."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

from experiments.faults import load
from experiments.faults.cluster import SECRET, TENANT
from hostlib.protocol import wire
from hostlib.protocol.expected import ENTRIES, expectation
from hostlib.protocol.members import Members
from hostlib.protocol.tenancy import seal_of
from hostlib.protocol.transfer import BlockRef
from topologies.fabric import Endpoint, Fabric

FRAMES = 256
"""Number of frames of each attack, which are sent in turn."""
HOT_BLOCKS = 8
FRAGMENTS = 16
"""Number of fragments of a block."""


@dataclass(frozen=True, slots=True)
class IntruderPlace:
    """Hosts of an attack: the intruder, a victim, storage nodes and the controller."""

    intruder: Endpoint
    victim: Endpoint
    stores: tuple[Endpoint, ...]
    controller: Endpoint

    @property
    def store(self) -> Endpoint:
        """Return the first storage node."""
        return self.stores[0]

    @classmethod
    def of(cls, fabric: Fabric, attack: str) -> IntruderPlace:
        """Return the place of an attack in a fabric."""
        intruder = fabric.hosts[sender(fabric, attack)]
        controller = fabric.controller_of(intruder.name)
        stores = tuple(fabric.hosts[name] for name in fabric.stores)
        return cls(intruder, fabric.hosts[fabric.nodes[0]], stores, controller)


Make = Callable[[IntruderPlace, random.Random, int], Raw]


def frames(attack: str, fabric: Fabric, seed: int) -> list[str]:
    """Return the frames of an attack in hexadecimal."""
    place, draws = IntruderPlace.of(fabric, attack), random.Random(f"{seed} {attack}")
    return [bytes(ATTACKS[attack](place, draws, at)).hex() for at in range(FRAMES)]


def sender(fabric: Fabric, attack: str) -> str:
    """Return the host that sends an attack: the last node or, for STORAGE_NODE_ATTACKS, a storage node."""
    return (fabric.stores if attack in STORAGE_NODE_ATTACKS else fabric.nodes)[-1]


def hot_key(at: int) -> bytes:
    """Return the key of a block that all nodes read, which anyone who taps a link learns."""
    return _hot_keys()[at % HOT_BLOCKS]


@cache
def _hot_keys() -> tuple[bytes, ...]:
    seal = seal_of(TENANT, SECRET)
    return tuple(load.hot_key(seal, number) for number in range(HOT_BLOCKS))


def _packet(
    place: IntruderPlace, to: Endpoint, payload: bytes, source: Endpoint | None = None, port: int = 0
) -> Raw:
    sender = source or place.intruder
    return (
        Ether(src=place.intruder.mac, dst=to.mac)
        / IP(src=str(sender.ipv4), dst=str(to.ipv4))
        / UDP(sport=port or wire.KV_PORT, dport=port or wire.KV_PORT)
        / Raw(payload)
    )


def _get(key: bytes, flags: int = 0, tenant: int = wire.TENANT_PUBLIC, fragments: int = 0) -> bytes:
    return wire.encode(wire.Message(wire.OP_GET, key, 0, fragments, flags, tenant=tenant))


def _gets(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, _get(draws.randbytes(wire.KEY_BYTES)))


def _foreign_gets(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, _get(hot_key(at), tenant=TENANT))


def _puts(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a PUT of garbage, as others' tenant, with a key that they use."""
    garbage = draws.randbytes(wire.VALUE_BYTES)
    message = wire.Message(
        wire.OP_PUT, hot_key(at), 0, 1, tenant=TENANT, content=1 + draws.getrandbits(63), tag=bytes(16),
        value=garbage,
    )  # fmt: skip
    return _packet(place, place.store, wire.encode(message))


def _values(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a VALUE in the name of a storage node, which the victim did not ask this host for."""
    message = wire.Message(
        wire.OP_VALUE, hot_key(at), 0, 1, tenant=TENANT, content=1 + draws.getrandbits(63), tag=bytes(16),
        value=draws.randbytes(wire.VALUE_BYTES),
    )  # fmt: skip
    return _packet(place, place.victim, wire.encode(message), source=place.store)


def _subscribes(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, _get(draws.randbytes(wire.KEY_BYTES), wire.FLAG_SUBSCRIBE))


def _malformed(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    return _packet(place, place.store, draws.randbytes(draws.randrange(1, 700)))


def _plain(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a plain datagram to the controller's address, which leads to the switch's CPU port."""
    return _packet(place, place.controller, bytes(64), port=9)


def _spoofed(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a GET in the name of another node, which would get the answer."""
    return _packet(place, place.store, _get(hot_key(at), tenant=TENANT), source=place.victim)


def _public_puts(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a durable PUT of a block of one fragment, which the intruder may write and disks must sync."""
    message = wire.Message(
        wire.OP_PUT, draws.randbytes(wire.KEY_BYTES), 0, 1, wire.FLAG_DURABLE, tag=bytes(16),
        content=1 + draws.getrandbits(63), value=draws.randbytes(wire.VALUE_BYTES),
    )  # fmt: skip
    return _packet(place, place.store, wire.encode(message))


def _hellos(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a HELLO as of a storage node that has caught up, which the controller would answer."""
    message = wire.Message(wire.OP_HELLO, bytes(wire.KEY_BYTES), 0, 0, wire.FLAG_HELD)
    return _packet(place, place.controller, wire.encode(message))


def _wrong_store(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a GET that is not merged, to each storage node in turn; most are no home of the block."""
    to = place.stores[at % len(place.stores)]
    return _packet(place, to, _get(hot_key(at // len(place.stores)), wire.FLAG_RETRY, TENANT))


def _longer(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a GET that is not merged, with a length that the block does not have."""
    to = place.stores[at % len(place.stores)]
    key = hot_key(at // len(place.stores))
    return _packet(place, to, _get(key, wire.FLAG_RETRY, TENANT, draws.randrange(2, 64)))


def _bypasses(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a GET past the pool, of an absurd length, that reports the pool's block as wrong."""
    to = place.stores[at % len(place.stores)]
    flags = wire.FLAG_BYPASS | wire.FLAG_REPAIR
    return _packet(place, to, _get(hot_key(at // len(place.stores)), flags, TENANT, wire.MAX_FRAGMENTS))


def _members_in_parts(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return half of a later list of storage nodes, which do not exist, as an IPv4 fragment.

    Hosts reassemble the list from two such fragments.
    """
    epoch = (at // 2 % 4) << 30 | 1
    members = replace(Members.of(["10.66.66.66"]), epoch=epoch)
    message = wire.Message(wire.OP_MEMBERS, bytes(wire.KEY_BYTES), 0, 0, epoch=1, value=members.encode())
    whole = _packet(place, (place.victim, *place.stores)[at // 8 % 4], wire.encode(message))
    whole[IP].id = 1 + at // 2
    return fragment(whole, 320)[at % 2]


def _frag_needed(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return an ICMP message that packets between a storage node and a node are too long for the path."""
    ends = (place.stores[at % len(place.stores)], place.victim)
    sender, receiver = ends if at % 2 else ends[::-1]
    refused = IP(src=str(sender.ipv4), dst=str(receiver.ipv4), flags="DF") / UDP(
        sport=wire.KV_PORT, dport=wire.KV_PORT, len=600
    )
    packet = IP(src=str(place.intruder.ipv4), dst=str(sender.ipv4)) / ICMP(type=3, code=4, nexthopmtu=552)
    return Ether(src=place.intruder.mac, dst=sender.mac) / packet / refused / Raw(bytes(20))


def _unanswered(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a GET that no home accepts, for its checksum, port or TTL: merged GETs would wait in vain."""
    to = place.stores[at % len(place.stores)]
    packet = _packet(place, to, _get(hot_key(at // len(place.stores)), tenant=TENANT))
    if at % 4 == 0:
        packet[UDP].sport = 9
    elif at % 4 == 1:
        packet[IP].ttl = 2
    else:
        packet[UDP].chksum = 0x1234
    return packet


def _stats(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a STAT, the shortest question that a storage node answers."""
    message = wire.Message(wire.OP_STAT, draws.randbytes(wire.KEY_BYTES), 0, 0)
    return _packet(place, place.stores[at % len(place.stores)], wire.encode(message))


def _to_nodes(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a GET or a PUT to a node that works."""
    key = draws.randbytes(wire.KEY_BYTES)
    put = wire.Message(wire.OP_PUT, key, 0, 1, content=1, tag=bytes(16), value=bytes(wire.VALUE_BYTES))
    return _packet(place, place.victim, wire.encode(put) if at % 2 else _get(key))


def _incomplete(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a PUT of one fragment, for three homes, of a longest possible block that stays incomplete."""
    message = wire.Message(
        wire.OP_PUT, draws.randbytes(wire.KEY_BYTES), draws.randrange(wire.MAX_FRAGMENTS), wire.MAX_FRAGMENTS,
        draws.choice([0, wire.FLAG_DURABLE]), tag=bytes(16), content=1 + draws.getrandbits(63),
        homes=(1, 2, 3), value=draws.randbytes(wire.VALUE_BYTES),
    )  # fmt: skip
    return _packet(place, place.stores[at % len(place.stores)], wire.encode(message))


def _expects(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return an EXPECT of blocks that are never put, so that the pool makes room, or a garbage PUT."""
    if at % 2:
        garbage = wire.Message(
            wire.OP_PUT, hot_key(at), draws.randrange(FRAGMENTS), FRAGMENTS, tenant=TENANT, tag=bytes(16),
            content=1 + draws.getrandbits(63), value=draws.randbytes(wire.VALUE_BYTES),
        )  # fmt: skip
        return _packet(place, place.store, wire.encode(garbage))
    blocks = ((BlockRef(draws.randbytes(wire.KEY_BYTES), depth), FRAGMENTS) for depth in range(ENTRIES))
    (message,) = expectation(TENANT, blocks, 0)
    return _packet(place, place.controller, message)


def _odd_frames(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a frame that is no message of the protocol, or almost one."""
    packet = _packet(place, place.store, _get(hot_key(at), tenant=TENANT))
    kind = at % 8
    if kind == 0:
        return Ether(src=place.intruder.mac, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=2, hwsrc=place.intruder.mac, psrc=str(place.store.ipv4), pdst=str(place.victim.ipv4)
        )
    if kind == 1:
        return Ether(src=place.intruder.mac, dst=place.store.mac) / Dot1Q(vlan=1) / packet[IP]
    if kind == 2:
        packet[UDP].len = draws.choice([0, 8, 87, 89, 600, 0xFFFF])
    elif kind == 3:
        packet[IP].len = draws.choice([0, 20, 100, 2000])
    elif kind == 4:
        packet[IP].ihl = draws.randrange(16)
    elif kind == 5:
        packet[IP].dst = draws.choice(["255.255.255.255", "224.0.0.1", "0.0.0.0", "127.0.0.1"])
    elif kind == 6:
        packet[IP].version = draws.randrange(16)
    return Raw(bytes(packet)[: draws.randrange(14, 120)])


def _lying_values(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a storage node's VALUE of a block that others read, which nobody asked it for."""
    flags = draws.choice([0, wire.FLAG_BYPASS, wire.FLAG_FROM_POOL, wire.FLAG_BYPASS | wire.FLAG_REPAIR])
    message = wire.Message(
        wire.OP_VALUE, hot_key(at), draws.randrange(FRAGMENTS), FRAGMENTS, flags, tenant=TENANT,
        content=1 + draws.getrandbits(63), tag=bytes(16), value=draws.randbytes(wire.VALUE_BYTES),
    )  # fmt: skip
    return _packet(place, place.victim, wire.encode(message))


def _lying_answers(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a storage node's answer to a request that it did not get."""
    op = draws.choice([wire.OP_NOT_FOUND, wire.OP_REFUSED, wire.OP_PUT_ACK, wire.OP_FOUND])
    known = wire.OP_NOT_FOUND, wire.OP_REFUSED
    flags = wire.FLAG_MERGED if op in known else wire.FLAG_HELD | wire.FLAG_DURABLE
    message = wire.Message(
        op, hot_key(at), 0, 0 if op in known else FRAGMENTS, flags, draws.randrange(1, 7), tenant=TENANT,
        backlog_ms=0xFFFF,
    )  # fmt: skip
    return _packet(place, place.victim, wire.encode(message))


def _lying_lists(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a storage node's LIST, which asks another one for all that it holds, from the beginning."""
    message = wire.Message(wire.OP_LIST, bytes(wire.KEY_BYTES), 0, 0, homes=(3, 0, 0))
    return _packet(place, place.store, wire.encode(message))


def _lying_hellos(place: IntruderPlace, draws: random.Random, at: int) -> Raw:
    """Return a HELLO of a storage node that has caught up or not, with a random epoch of its list."""
    message = wire.Message(
        wire.OP_HELLO, bytes(wire.KEY_BYTES), 0, 0, draws.choice([0, wire.FLAG_HELD]),
        draws.getrandbits(32) or 1,
    )  # fmt: skip
    return _packet(place, place.controller, wire.encode(message))


ATTACKS: dict[str, Make] = {
    "gets": _gets,
    "foreign_gets": _foreign_gets,
    "puts": _puts,
    "values": _values,
    "subscribes": _subscribes,
    "malformed": _malformed,
    "plain": _plain,
    "spoofed": _spoofed,
    "public_puts": _public_puts,
    "hellos": _hellos,
    "wrong_store": _wrong_store,
    "longer": _longer,
    "bypasses": _bypasses,
    "unanswered": _unanswered,
    "members_in_parts": _members_in_parts,
    "frag_needed": _frag_needed,
    "stats": _stats,
    "to_nodes": _to_nodes,
    "incomplete": _incomplete,
    "expects": _expects,
    "odd_frames": _odd_frames,
    "lying_values": _lying_values,
    "lying_answers": _lying_answers,
    "lying_lists": _lying_lists,
    "lying_hellos": _lying_hellos,
}
STORAGE_NODE_ATTACKS = frozenset({"lying_values", "lying_answers", "lying_lists", "lying_hellos"})
"""Attacks from the port of a storage node, which also does its work."""
INSIDER_ATTACKS = frozenset({"wrong_store", "longer", "bypasses", "unanswered", "expects"})
"""Attacks of a host that belongs to the others' tenant and knows its keys, but not its secret."""
