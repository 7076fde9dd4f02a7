"""Fuzzing of one program, filled with random entries, with many packets and P4Runtime requests."""

from __future__ import annotations

import array
import random
from ctypes import c_char_p, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.compile import compile_p4
from v1model.frontend.preprocess import preprocess
from v1model.fuzz.entries import Filler
from v1model.fuzz.packets import packets
from v1model.fuzz.requests import RequestFuzzer
from v1model.fuzz.sources import SourceFuzzer
from v1model.switch import Switch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SEEDS = 512
ROUNDS = 8  # each with new entries
TURNS = 4  # of requests and packets in a round


def fuzz(
    path: str | Path, defines: Mapping[str, str], count: int, seed: int, requests: int = 0, texts: int = 0
) -> tuple[int, int]:
    """Fuzz a program; returns how many packets went in, and how many updates were accepted.

    A sanitizer's report ends the process. An exception that is no P4Runtime error is raised. So is one that
    is no refusal when the compiler gets the changed `texts`.
    """
    SourceFuzzer(preprocess(Path(path), (), defines), random.Random(f"{seed}.texts")).run(texts)
    compiled = compile_p4(path, defines=defines, sanitize=True)
    taken = accepted = 0
    turns = zip(_shares(count), _shares(requests), strict=True)
    for number in range(ROUNDS):
        rng = random.Random(f"{seed}.{number}")
        with Switch(compiled) as switch:
            Filler(switch, rng).fill()
            seeds = packets(compiled.program, SEEDS, rng)
            fuzzer = RequestFuzzer(switch, rng)
            for _ in range(TURNS):
                packet_share, request_share = next(turns)
                accepted += fuzzer.run(request_share)
                taken += _inject(switch, seeds, packet_share, rng.getrandbits(64))
    return taken, accepted


def _shares(count: int) -> Iterator[int]:
    """Return `count` split into as many parts as there are turns."""
    turns = ROUNDS * TURNS
    return (count // turns + (number < count % turns) for number in range(turns))


def _inject(switch: Switch, seeds: list[bytes], count: int, seed: int) -> int:
    function = switch.handle.library.declare(
        "fuzz", c_uint64, c_void_p, c_char_p, c_char_p, c_uint32, c_uint64, c_uint64
    )
    lengths = array.array("I", map(len, seeds)).tobytes()
    return int(function(switch.handle.pointer, b"".join(seeds), lengths, len(seeds), count, seed))
