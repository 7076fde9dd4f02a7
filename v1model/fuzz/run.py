"""One program, filled with random entries, against many packets."""

from __future__ import annotations

import array
import random
from ctypes import c_char_p, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING

from v1model.compile import compile_p4
from v1model.fuzz.entries import Filler
from v1model.fuzz.packets import packets
from v1model.switch import Switch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SEEDS = 512
ROUNDS = 8  # each with new entries


def fuzz(path: str | Path, defines: Mapping[str, str], count: int, seed: int) -> int:
    """How many packets went in. A sanitizer's report ends the process."""
    compiled = compile_p4(path, defines=defines, sanitize=True)
    taken = 0
    for number in range(ROUNDS):
        rng = random.Random(f"{seed}.{number}")
        with Switch(compiled) as switch:
            Filler(switch, rng).fill()
            seeds = packets(compiled.program, SEEDS, rng)
            share = count // ROUNDS + (number < count % ROUNDS)
            taken += _inject(switch, seeds, share, rng.getrandbits(64))
    return taken


def _inject(switch: Switch, seeds: list[bytes], count: int, seed: int) -> int:
    function = switch.handle.library.declare(
        "fuzz", c_uint64, c_void_p, c_char_p, c_char_p, c_uint32, c_uint64, c_uint64
    )
    lengths = array.array("I", map(len, seeds)).tobytes()
    return int(function(switch.handle.pointer, b"".join(seeds), lengths, len(seeds), count, seed))
