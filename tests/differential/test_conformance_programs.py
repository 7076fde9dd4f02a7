"""The conformance programs with their entries, and packets that no case thought of, through both engines."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance import bmv2
from tests.conformance.test_conformance import CASES, IDS, NOT_ON_BMV2
from tests.differential.pair import Pair
from tests.differential.reference import Reference
from tests.differential.stimulus import hostile
from v1model.dataplane import DataPlane
from v1model.fuzz.packets import packets
from v1model.stf.executor import Executor
from v1model.stf.parser import parse
from v1model.stf.statements import CheckCounter, Expect, NoPacket, Packet, Statement
from v1model.stf.target import EmbeddedTarget

PACKETS = 300
WALKS = 40
PORTS = (0, 1, 2, 3, 7, 63, bmv2.CPU_PORT)

# What BMv2 leaves undefined, and what therefore is not sent. A field of an invalid header (P4_16 8.25) has
# what an earlier packet left in it; a release build does not check the index of a register, counter or
# meter, and ends when it is out of range. Nor is that sent where BMv2 departs from the specification:
# setInvalid() of an invalid member of a header union leaves the other one valid (p4c issue 4448).
SHAPE, SHAPE_BYTES = "harness/shape.p4", 17


def shape_a(data: bytes) -> int:
    """The field `a` of that header."""
    return int.from_bytes(data[1:5], "big")


UNDEFINED: dict[str, Callable[[bytes], bool]] = {
    "meters": lambda data: shape_a(data) >= 4,
    "counters": lambda data: data[0] >= 4 or shape_a(data) >= 4,
    "registers": lambda data: data[0] in (0, 1, 2) and shape_a(data) >= 8,
    "invalid": lambda data: len(data) < 7,
    "packet_length": lambda data: len(data) < 3,
    "unions": lambda data: data[:1].hex() in {f"2{digit}" for digit in "02468ace"},
    "stacks": lambda data: len(data) < 2 or data[0] == 7,  # op 7 reads a label, there or not
}
# Packets that make a program tell what it has stored: BMv2 has no registers over P4Runtime.
READ_BACK = {
    "registers": [bytes([1, 0, 0, 0, index]) + bytes(12) for index in range(8)]
    + [bytes([2, 0, 0, 0, index]) + bytes(12) for index in range(8)]
    + [bytes([op]) + bytes(16) for op in (3, 4)],
}
NOT_COMPARED = {
    "again": "BMv2 does not say when it is through with packets that went round again",
    "messages": "a failed assertion ends BMv2",
}

pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.skipif(not bmv2.is_present(), reason="p4c-bm2-ss and simple_switch_grpc are not on PATH"),
]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_conformance_program(case: Path, seed: str) -> None:
    text = case.read_text()
    if text.startswith(NOT_ON_BMV2):
        pytest.skip(text.splitlines()[0].removeprefix("# "))
    if case.stem in NOT_COMPARED:
        pytest.skip(NOT_COMPARED[case.stem])
    rng = random.Random(f"{seed} {case.stem}")
    program = case.with_suffix(".p4")
    with EmbeddedTarget(program) as embedded, Reference(program) as reference:
        pair = Pair(embedded.data_plane, reference)
        own = run_case(parse(text), pair)
        seeds = [packet.data for packet in own] * 3 + packets(reference.program, WALKS, rng)
        ports = [packet.port for packet in own] + list(PORTS)
        stimulus = ((rng.choice(ports), hostile(seeds, rng)) for _ in range(PACKETS))
        pair.send((port, data) for port, data in stimulus if is_defined(program, data))
        pair.send((0, data) for data in READ_BACK.get(case.stem, []))
        pair.finish()


def is_defined(program: Path, data: bytes) -> bool:
    """Whether the program's result depends on the packet alone."""
    if SHAPE in program.read_text() and len(data) < SHAPE_BYTES:
        return False  # these programs read their header without asking whether it is valid
    undefined = UNDEFINED.get(program.stem)
    return undefined is None or not undefined(data)


def run_case(statements: Sequence[Statement], pair: Pair) -> list[Packet]:
    """Does what the case does, on both sides; its packets. What it expects is another test's business."""
    executors = [Executor(ControlPlane(plane)) for plane in (pair.embedded, pair.reference.data_plane)]
    own = []
    for statement in statements:
        if isinstance(statement, Packet):
            pair.send([(statement.port, statement.data)])
            own.append(statement)
        elif not isinstance(statement, Expect | NoPacket | CheckCounter):
            for executor in executors:
                executor.run([statement])
    return own


@dataclass
class ControlPlane:
    """An executor's target that takes no packets."""

    data_plane: DataPlane

    def send(self, port: int, data: bytes) -> None:
        raise NotImplementedError

    def received(self, expected: Mapping[int, int]) -> Mapping[int, Sequence[bytes]]:
        return {}
