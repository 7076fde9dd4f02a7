"""Hostile bursts for the compiled core, built with ASan and UBSan.

    python -m hostlib.tools.fuzz [--bursts N] [--seed N]

Exit code 0: nothing found. A finding is the sanitizers' own report on stderr.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import subprocess
import sys
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hostlib.native import load
from hostlib.native.build import SANITIZE_FLAGS, build
from hostlib.native.lane_options import LaneOptions
from hostlib.protocol import wire
from hostlib.protocol.block import Block, Derived, Place
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef

if TYPE_CHECKING:
    from hostlib.native import Core
    from hostlib.native.lane import Lane, Request

TENANT = 3
SEAL = Seal(TENANT, bytes(32))
MOST_FRAGMENTS = 40
ADDRESS = "127.253.7.7"


@dataclass(slots=True, eq=False)
class _Fetch:
    """The fields of `hostlib.client.fetch.Fetch` that the core reads."""

    block: BlockRef
    content: int
    fragments: int
    buffer: memoryview
    missing: int
    flags: int = 0
    length: int = 0
    pool_fragments: int = 0
    merged_fragments: int = 0
    started_s: float | None = None
    first_sequence: int = 0
    asked_epoch: int = -1
    target: memoryview | None = None
    probed_s: float = 0.0
    probe_from_pool: bool = False
    requests: list[Request[_Fetch]] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    """Run the command line, again in a process with the sanitizers' runtime loaded first; return the exit
    code."""
    parser = argparse.ArgumentParser(prog="python -m hostlib.tools.fuzz", description=__doc__)
    parser.add_argument("--bursts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    library = build(("-Werror", "-O1", *SANITIZE_FLAGS))
    if "LD_PRELOAD" not in os.environ:
        compiler = os.environ.get("CC", "cc")
        asked = [compiler, "-print-file-name=libasan.so"]
        runtime = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        # The interpreter itself is not checked for leaks; PYTHONMALLOC lets ASan see each object.
        given = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
        command = [sys.executable, "-m", "hostlib.tools.fuzz", *arguments]
        return subprocess.run(command, env={**os.environ, **given}, check=False).returncode
    chance = random.Random(options.seed)
    core, counts = load(library), [0, 0, 0, 0]
    for _ in range(options.bursts):
        _values(core, chance, counts)
        _gets(core, chance, counts)
        _puts(core, chance, counts)
    _sockets(core, chance, counts, max(10, options.bursts // 50))
    values, gets, datagrams, puts = counts
    print(
        f"{options.bursts:,} bursts: {values:,} values taken, {gets:,} GETs answered, {puts:,} PUTs kept or "
        f"acknowledged, {datagrams:,} datagrams through sockets"
    )
    return 0 if all(counts) else 1  # what never gets anywhere tests nothing


def _damaged(datagram: bytes, chance: random.Random) -> bytes:
    """Return a datagram as it was, as a rule; else with another byte, another length, or noise."""
    match chance.randrange(12):
        case 0:
            changed = bytearray(datagram)
            changed[chance.randrange(wire.KV_HEADER_BYTES)] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
            return bytes(changed)
        case 1:
            return datagram[: chance.randrange(len(datagram) + 1)]
        case 2:
            return chance.randbytes(chance.choice([0, 1, 79, 80, 81, 591, 592, 593]))
    return datagram


def _values(core: Core, chance: random.Random, counts: list[int]) -> None:
    """Compare cores by values for some fetches, which may be wrong about themselves."""
    active: dict[bytes, _Fetch] = {}
    burst: list[bytes] = []
    lanes: list[Lane[_Fetch]] = [
        core.Lane(home, LaneOptions(), trips)
        for trips in (core.RoundTrips(), core.RoundTrips())
        for home in ("home", "pool", "home", "home", "home", "home")
    ]
    for number in range(chance.randint(1, 4)):
        fragments = chance.randint(1, MOST_FRAGMENTS)
        key = bytes([number]) * wire.KEY_BYTES
        room = fragments if chance.random() < 0.7 else chance.randrange(fragments + 1)
        buffer = memoryview(bytearray(room * wire.VALUE_BYTES))
        content = chance.choice([0, 5, 2**64 - 1])
        fetch = active[key] = _Fetch(BlockRef(key), content, fragments, buffer, fragments)
        fetch.target = chance.choice([None, buffer])
        write = content or 5
        fetch.requests = core.new_requests(fetch, 0, chance.choice([0, 1, fragments, fragments]))
        for request in fetch.requests:
            request.flags = chance.choice([0, 0, 0, wire.FLAG_BYPASS])
            if chance.random() < 0.95:
                chance.choice(lanes).add([request])
        for at in range(fragments):
            value = bytes(chance.choice([wire.VALUE_BYTES, wire.VALUE_BYTES, 0, 17]))
            tag = SEAL.tag(key, at, fragments, write, value)
            message = wire.Message(
                wire.OP_VALUE,
                key,
                at,
                fragments,
                chance.choice([0, 0, 0, wire.FLAG_FROM_POOL, wire.FLAG_MERGED, wire.FLAG_BYPASS]),
                tenant=TENANT,
                content=write,
                backlog_ms=chance.randrange(100),
                tag=tag,
                value=value,
            )
            burst.append(_damaged(wire.encode(message), chance))
    for lane in lanes:
        lane.take(1.0)
        if chance.random() < 0.2:
            lane.expire(chance.choice([1.1, 2.5, 99.0]))
            lane.take(2.6, chance.choice([None, 0, 5]))
    if chance.random() < 0.5:
        chance.shuffle(burst)
    at = 0
    while at < len(burst):
        run = core.take_values(burst, at, active, TENANT, core.tag_state(SEAL.tag_key), 1.25, 7)
        taken = run[0] if run is not None else 0
        counts[0] += taken
        at += taken or 1


def _gets(core: Core, chance: random.Random, counts: list[int]) -> None:
    """Compare cores by GETs of two fetches, and a store that has something else or not all of it."""
    held: OrderedDict[Place, Block | Derived] = OrderedDict()
    burst: list[bytes] = []
    for number in range(2):
        key = bytes([number]) * wire.KEY_BYTES
        fragments = chance.randint(1, MOST_FRAGMENTS)
        block = BlockRef(key, number, 2, chance.getrandbits(32), chance.choice([0, 1 << 40]))
        fetch = _Fetch(block, chance.choice([0, 5]), fragments, memoryview(b""), fragments)
        requests = core.new_requests(fetch, 0, fragments)
        for request in requests:
            request.tries = chance.choice([0, 0, 3])
        asked = chance.choices(requests, k=chance.randrange(20))
        gets = core.encode_gets(asked, 0, _Fetch, 2**32 - 3, 1.0, TENANT, 7)
        burst += [_damaged(get, chance) for get in gets]
        tags = chance.choice([fragments, fragments, chance.randint(0, MOST_FRAGMENTS)])
        content = bytes(max(0, tags * wire.VALUE_BYTES - chance.randrange(600)))
        sealed = Block(5, content, bytes(tags * wire.TAG_BYTES + chance.choice([0, 0, 1])))
        if chance.random() < 0.9:
            held[Place(TENANT, key)] = sealed if chance.random() < 0.5 else Derived(len(content))
    ahead = set(chance.sample(list(held), chance.randrange(len(held) + 1)) if chance.random() < 0.2 else [])
    shelf = (held, ahead, lambda place, length: Block(5, bytes(length), bytes(16)), Place, Block)
    chance.shuffle(burst)
    at = 0
    while at < len(burst):
        run = core.serve_gets(burst, at, shelf, 0, lambda tenant: chance.choice([0, 1 << 40]), [])
        served = run[0] if run is not None else 0
        counts[1] += served
        at += served or 1


def _puts(core: Core, chance: random.Random, counts: list[int]) -> None:
    """Compare cores by PUTs of a block as a client sends them, and their acknowledgements, damaged on the
    way.

    The store has some of the block, or something else.
    """
    fragments = chance.randint(1, MOST_FRAGMENTS)
    content = bytes(max(0, fragments * wire.VALUE_BYTES - chance.randrange(520)))
    lane: Lane[str] = core.Lane("home", LaneOptions(), core.RoundTrips())
    requests = core.new_requests("leg", 0, fragments)
    head = wire.encode(
        wire.Message(wire.OP_PUT, bytes(wire.KEY_BYTES), 0, fragments, tenant=TENANT, content=5)
    )
    tags = [chance.choice([b"", b"", bytes(16), b"x"]) for _ in range(fragments - (chance.random() < 0.1))]
    for request in requests:
        request.tries = chance.choice([0, 0, 0, 2])
    if chance.random() < 0.9:
        lane.launched(requests, 1.0)
    puts: list[bytes] = []
    with suppress(ValueError):  # fragments that the block does not have
        while len(puts) < fragments:
            state = core.tag_state(SEAL.tag_key)
            puts += core.encode_puts(requests, len(puts), head, 2**32 - 3, content, tags, state)
    burst = [_damaged(put, chance) for put in puts]
    if chance.random() < 0.5:
        chance.shuffle(burst)
    values: dict[int, Any] = {
        at: chance.choice([(bytes(512), bytes(16)), (b"", b""), bytes(591), bytes(592), b"\xff" * 592, None])
        for at in range(chance.choice([0, 0, 0, 2]))
    }
    at, replies = 0, [bytes(80)]
    while at < len(burst):
        count, _ = core.put_run(burst, at)
        run = count if chance.random() < 0.9 else chance.randrange(-1, len(burst) + 1)
        with suppress(ValueError, IndexError):
            counts[3] += core.keep(values, burst, at, run, chance.choice([fragments, fragments, 0, 2**40]))
            core.encode_acks(burst, at, run, 0, chance.choice([0, 7]), 0, 0, replies, chance.choice([0, 7]))
        at += count or 1
    with suppress(ValueError):
        core.join(values, chance.choice([fragments, fragments, 0, -1, len(values), 2**40]))
    acks = [_damaged(ack, chance) for ack in replies]
    at = 0
    while at < len(acks):
        taken = core.take_acks(acks, at, requests, chance.choice([1, 99]), TENANT, 5, 1.5, 20)
        counts[3] += taken[0] if taken else 0
        at += taken[0] if taken else 1
    core.drop(requests)


def _sockets(core: Core, chance: random.Random, counts: list[int], rounds: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((ADDRESS, 0))
        port = one.getsockname()[1]
        one.setsockopt(socket.IPPROTO_UDP, 104, 1)  # UDP_GRO
        for _ in range(rounds):
            length = chance.choice([0, 1, 80, 592, 1400])
            datagrams = [bytes(length)] * chance.randint(1, 40)
            try:
                at, batch_bytes = chance.randrange(len(datagrams) + 1), chance.choice([0, 600, 5000, 65000])
                core.send(one, ADDRESS, port, datagrams, at, batch_bytes, chance.random() < 0.5)
            except OSError:
                continue  # the kernel does not put that together
            counts[2] += core.receive(one, chance.choice([port, 1]), memoryview(b""))[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
