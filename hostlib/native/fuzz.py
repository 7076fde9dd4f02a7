"""Hostile bursts for the compiled core, built with ASan and UBSan.

    python -m hostlib.native.fuzz [--bursts N] [--seed N]

Exit code 0: nothing found. A finding is the sanitizers' own report on stderr.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlib import wire
from hostlib.native import load
from hostlib.native.build import SANITIZE_FLAGS, build
from hostlib.seal import Seal

if TYPE_CHECKING:
    from hostlib.native import Core

TENANT = 3
SEAL = Seal(TENANT, bytes(32))
MOST_FRAGMENTS = 40
ADDRESS = "127.253.7.7"


@dataclass(slots=True)
class _Request:
    """What the core reads of a `hostlib.lane.Request`."""

    fragment: int
    flags: int = 0
    tries: int = 0
    done: bool = False
    lane: object = "some lane"


@dataclass(slots=True)
class _Fetch:
    """What the core reads of a `hostlib.fetch.Fetch`."""

    content: int
    fragments: int
    buffer: memoryview
    flags: int = 0
    requests: list[_Request] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    """The command line; runs itself again with the sanitizers' runtime loaded first."""
    parser = argparse.ArgumentParser(prog="python -m hostlib.native.fuzz", description=__doc__)
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
        command = [sys.executable, "-m", "hostlib.native.fuzz", *arguments]
        return subprocess.run(command, env={**os.environ, **given}, check=False).returncode
    chance = random.Random(options.seed)
    core, counts = load(library), [0, 0, 0]
    for _ in range(options.bursts):
        _values(core, chance, counts)
        _gets(core, chance, counts)
    _sockets(core, chance, counts, max(10, options.bursts // 50))
    values, gets, datagrams = counts
    print(
        f"{options.bursts:,} bursts: {values:,} values taken, {gets:,} GETs answered, "
        f"{datagrams:,} datagrams through sockets"
    )
    return 0 if all(counts) else 1  # what never gets anywhere tests nothing


def _damaged(datagram: bytes, chance: random.Random) -> bytes:
    """Often as it was; else another byte, another length, or noise."""
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
    """Values for two fetches, one of which may be wrong about itself."""
    active: dict[bytes, _Fetch] = {}
    burst: list[bytes] = []
    for number in range(2):
        fragments = chance.randint(1, MOST_FRAGMENTS)
        key = bytes([number]) * wire.KEY_BYTES
        room = fragments if chance.random() < 0.7 else chance.randrange(fragments + 1)
        buffer = memoryview(bytearray(room * wire.VALUE_BYTES))
        content = chance.choice([0, 5, 2**64 - 1])
        fetch = active[key] = _Fetch(content, fragments, buffer)
        write = content or 5
        fetch.requests = [_Request(at) for at in range(chance.choice([0, 1, fragments, fragments]))]
        for at in range(fragments):
            value = bytes(chance.choice([wire.VALUE_BYTES, wire.VALUE_BYTES, 0, 17]))
            tag = SEAL.tag(key, at, fragments, write, value)
            message = wire.Message(
                wire.OP_VALUE,
                key,
                at,
                fragments,
                tenant=TENANT,
                content=write,
                tag=tag,
                value=value,
            )
            burst.append(_damaged(wire.encode(message), chance))
    at = 0
    while at < len(burst):
        run = core.take_values(burst, at, active, TENANT, SEAL.tags)
        taken = len(run[1]) if run is not None else 0
        counts[0] += taken
        at += taken or 1


def _gets(core: Core, chance: random.Random, counts: list[int]) -> None:
    fragments = chance.randint(1, MOST_FRAGMENTS)
    alike = wire.encode(wire.Message(wire.OP_GET, bytes(wire.KEY_BYTES), 0, fragments))
    requests = [_Request(chance.randrange(fragments)) for _ in range(chance.randrange(20))]
    burst = [_damaged(get, chance) for get in core.encode_gets(alike, requests, 0, 2**32 - 3)]
    held = chance.choice([fragments, fragments, chance.randint(0, MOST_FRAGMENTS)])
    content = bytes(max(0, held * wire.VALUE_BYTES - chance.randrange(600)))
    at = 0
    while at < len(burst):
        count, _ = core.get_run(burst, at)
        run = burst[at : at + count] if chance.random() < 0.9 else burst
        with suppress(ValueError):  # a fragment that is not in the block
            counts[1] += len(core.encode_values(run, 0, held, 5, 0, 0, content, bytes(held * wire.TAG_BYTES)))
        at += count or 1


def _sockets(core: Core, chance: random.Random, counts: list[int], rounds: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((ADDRESS, 0))
        port = one.getsockname()[1]
        one.setsockopt(socket.IPPROTO_UDP, 104, 1)  # UDP_GRO
        for _ in range(rounds):
            length = chance.choice([0, 1, 80, 592, 1400])
            datagrams = [bytes(length)] * chance.randint(1, 40)
            try:
                at, longest = chance.randrange(len(datagrams) + 1), chance.randint(1, 64)
                core.send(one.fileno(), ADDRESS, port, datagrams, at, longest, chance.random() < 0.5)
            except OSError:
                continue  # the kernel does not put that together
            counts[2] += core.receive(one.fileno(), chance.choice([port, 1]))[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
