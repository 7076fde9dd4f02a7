"""Workloads: the frames of each, and the rules by which a bare echo causes the same traffic.

Five hosts are attached to the engine, each by a cable of its own: four nodes (cables 0 to 3, ports 1 to 4)
and a storage node (cable 4, port 5). Nodes ask, and only the storage node answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Final

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from experiments.bench.switch.plan import Answers, Copy, Frame, Plan
from hostlib.protocol import wire

NODES: Final = 4
STORE: Final = NODES
CABLES: Final = NODES + 1

FRAGMENTS: Final = 32
BLOCKS: Final = 1024 * 512 // wire.VALUE_BYTES
"""Number of blocks, of 16 MiB together: with values of 512 bytes the whole pool, in its default size."""

GET_BYTES: Final = wire.FRAME_HEADER_BYTES + wire.KV_HEADER_BYTES
PLAIN_PORT: Final = 9  # UDP's discard service: nothing of the pool's protocol
_IPV4_SOURCE: Final = 26
_IPV4_DESTINATION: Final = 30
_FLAGS: Final = wire.FRAME_HEADER_BYTES + 2
_SEQUENCE: Final = wire.FRAME_HEADER_BYTES + 8
_PLACE: Final = wire.FRAME_HEADER_BYTES + 32  # tenant, fragment, fragments
_KEY: Final = wire.FRAME_HEADER_BYTES + 48
_CONTENT: Final = 1  # content id of every block, as each is written once
_CHUNK: Final = 256
"""Number of values that are asked for before the first of them is sent.

At any rate, each request then arrives before its value.
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """Kind of traffic."""

    name: str
    title: str
    cables: tuple[int, ...]
    """Cables in use. Ports of the plan and of the echo's rules are indices into this tuple."""
    echo_rules: tuple[str, ...]
    """Rules by which an echo moves the same frames without looking at them (native/echo.c)."""
    make_plan: Callable[[int], Plan]
    """Function that makes the plan from a seed."""


def ipv4(cable: int) -> str:
    """Return the IPv4 address of the host at a cable."""
    return f"10.0.0.{cable + 1}"


def mac(cable: int) -> str:
    """Return the Ethernet address of the host at a cable."""
    return f"02:00:00:00:00:{cable + 1:02x}"


def key_of(block: int) -> bytes:
    """Return the key of a block of the pool."""
    return blake2b(block.to_bytes(4, "big"), digest_size=wire.KEY_BYTES).digest()


def value_of(block: int, fragment: int) -> bytes:
    """Return the value of a block's fragment."""
    return blake2b(block.to_bytes(4, "big") + fragment.to_bytes(2, "big")).digest() * (wire.VALUE_BYTES // 64)


@cache
def _headers(source: int, destination: int, payload_bytes: int, udp_port: int) -> bytes:
    """Return the Ethernet, IPv4 and UDP headers of a frame.

    The UDP checksum is zero, which means none, so that the generator may write into the payload.
    """
    frame = (
        Ether(src=mac(source), dst="02:00:00:00:00:fe")
        / IP(src=ipv4(source), dst=ipv4(destination))
        / UDP(sport=udp_port, dport=udp_port, chksum=0)
        / bytes(payload_bytes)
    )
    return bytes(frame)[: wire.FRAME_HEADER_BYTES]


def kv_frame(source: int, destination: int, message: wire.Message) -> bytes:
    """Return a whole frame of the pool's protocol."""
    payload = wire.encode(message)
    return _headers(source, destination, len(payload), wire.KV_PORT) + payload


def _get(node: int, key: bytes, fragment: int = 0) -> bytes:
    return kv_frame(node, STORE, wire.Message(wire.OP_GET, key, fragment, FRAGMENTS))


def _in_random_order(seed: int) -> Sequence[tuple[int, int]]:
    """Return all (block, fragment): blocks in random order, fragments in a row, as clients ask for them."""
    blocks = list(range(BLOCKS))
    random.Random(seed).shuffle(blocks)
    return [(block, fragment) for block in blocks for fragment in range(FRAGMENTS)]


def _hits(seed: int) -> Plan:
    frames = [Frame(0, _get(0, key_of(block), fragment)) for block, fragment in _in_random_order(seed)]
    return Plan(1, frames, _SEQUENCE, reply_bytes=wire.VALUE_FRAME_BYTES)


def fill_plan() -> Plan:
    """Return the plan in which node 0 asks for every value of the pool once, so that the switch stores it."""
    places = [(key_of(block), block, fragment) for block in range(BLOCKS) for fragment in range(FRAGMENTS)]
    frames: list[Frame] = []
    for start in range(0, len(places), _CHUNK):
        chunk = places[start : start + _CHUNK]
        frames += (Frame(0, _get(0, key, fragment)) for key, _, fragment in chunk)
        frames += (
            Frame(1, kv_frame(STORE, 0, _value(key, fragment, value_of(block, fragment))))
            for key, block, fragment in chunk
        )
    return Plan(2, frames, _SEQUENCE, reply_bytes=wire.VALUE_FRAME_BYTES)


def _value(key: bytes, fragment: int, value: bytes) -> wire.Message:
    return wire.Message(wire.OP_VALUE, key, fragment, FRAGMENTS, content=_CONTENT, value=value)


def _answers(port: int, answer: wire.Message | None = None) -> Answers:
    template = kv_frame(STORE, 0, answer or _value(bytes(wire.KEY_BYTES), 0, value_of(0, 0)))
    copies = (
        Copy(_IPV4_SOURCE, _IPV4_DESTINATION, 4),
        Copy(_FLAGS, _FLAGS, 2),
        Copy(_SEQUENCE, _SEQUENCE, 4),
        Copy(_PLACE, _PLACE, 6),
        Copy(_KEY, _KEY, wire.KEY_BYTES),
    )
    return Answers(port, template, copies)


def _unknown_key(seed: int) -> bytes:
    """Return a key that no block has. The generator writes the request's number into its first four bytes."""
    return blake2b(seed.to_bytes(8, "big"), digest_size=wire.KEY_BYTES, person=b"absent").digest()


def _misses(seed: int) -> Plan:
    frames = [Frame(0, _get(0, _unknown_key(seed)))]
    return Plan(2, frames, _SEQUENCE, wire.VALUE_FRAME_BYTES, key_offset=_KEY, answers=_answers(1))


def _merges(seed: int) -> Plan:
    frames = [Frame(node, _get(node, _unknown_key(seed))) for node in range(NODES)]
    return Plan(
        CABLES,
        frames,
        _SEQUENCE,
        wire.VALUE_FRAME_BYTES,
        key_offset=_KEY,
        group=NODES,
        answers=_answers(STORE),
    )


def _puts(seed: int) -> Plan:
    put = _value(_unknown_key(seed), 0, value_of(0, 0))._replace(op=wire.OP_PUT)
    acknowledged = put._replace(op=wire.OP_PUT_ACK, value=b"")
    frames = [Frame(0, kv_frame(0, STORE, put))]
    answers = _answers(1, acknowledged)
    return Plan(2, frames, _SEQUENCE, wire.HEADER_FRAME_BYTES, key_offset=_KEY, answers=answers)


def _plain(seed: int) -> Plan:
    payload = random.Random(seed).randbytes(wire.KV_HEADER_BYTES)
    frames = [Frame(0, _headers(0, 1, len(payload), PLAIN_PORT) + payload)]
    return Plan(2, frames, _SEQUENCE, reply_bytes=GET_BYTES)


WORKLOADS: Final = (
    Workload("hits", "GET hits", (0,), (f"0:0:{wire.VALUE_FRAME_BYTES}",), _hits),
    Workload("misses", "GET misses", (0, STORE), ("0:1:0", "1:0:0"), _misses),
    Workload(
        "merges",
        "GETs merged",
        tuple(range(CABLES)),
        (f"0:{STORE}:0", f"{STORE}:0,1,2,3:0"),
        _merges,
    ),
    Workload("puts", "PUTs", (0, STORE), ("0:1:0", "1:0:0"), _puts),
    Workload("l3", "plain IPv4", (0, 1), ("0:1:0",), _plain),
)
