"""Packets that programs don't expect: mutations of good ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

MAX_TRAILER_BYTES = 80


def mutate(data: bytes, rng: random.Random) -> bytes:
    """The packet as it is, with bits and bytes changed, cut short, or with something behind it."""
    mutation = rng.choice((_same, _flip_bits, _overwrite, _truncate, _append, _repeat))
    return mutation(data, rng)


def hostile(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """A mutated seed; now and then mutated again, rarely no seed at all."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(1, 100))
    data = mutate(rng.choice(seeds), rng)
    return mutate(data, rng) if rng.random() < 0.3 else data


def _same(data: bytes, rng: random.Random) -> bytes:
    return data


def _flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    """A run of bytes with an extreme or random value."""
    if not data:
        return data
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randint(1, 8))
    filling = rng.choice((b"\x00", b"\xff", b"\x01", rng.randbytes(1)))
    return data[:start] + filling * (end - start) + data[end:]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(1, max(1, len(data)))]


def _append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.randrange(MAX_TRAILER_BYTES))


def _repeat(data: bytes, rng: random.Random) -> bytes:
    """A second copy of some part, right behind it: one header too many."""
    start = rng.randrange(len(data) + 1)
    end = rng.randint(start, min(len(data), start + 40))
    return data[:end] + data[start:end] + data[end:]
