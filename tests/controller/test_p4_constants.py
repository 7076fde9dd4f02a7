"""The constants in Python are those of the P4 program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller import p4_constants
from hostlib.protocol import wire

INCLUDE = Path(__file__).parents[2] / "p4" / "include"
_CONST = re.compile(r"^const bit<\d+>\s+(\w+)\s*=\s*(\w+);", re.MULTILINE)
_DEFINE = re.compile(r"^#define (\w+) (\d+)\b", re.MULTILINE)


def constants_of_the_program() -> dict[str, int]:
    text = "".join(file.read_text() for file in INCLUDE.glob("*.p4"))
    found = {name: int(value) for name, value in _DEFINE.findall(text)}
    for name, value in _CONST.findall(text):
        found[name] = found[value] if value in found else int(value, 0)
    return found


PROGRAM = constants_of_the_program()
OURS = {name: value for name, value in vars(p4_constants).items() if isinstance(value, int)}


@pytest.mark.parametrize("name", OURS)
def test_a_constant_is_the_program_s(name: str) -> None:
    assert OURS[name] == PROGRAM[name]


def test_every_role_and_outcome_is_there() -> None:
    wanted = {name for name in PROGRAM if name.startswith(("ROLE_", "OUTCOME_"))}
    assert wanted <= OURS.keys()
    assert len(p4_constants.OUTCOME_NAMES) == PROGRAM["OUTCOMES"]
    assert p4_constants.OUTCOME_NAMES[p4_constants.OUTCOME_SERVED] == "served"


def test_control_operations_are_the_wire_protocol_s() -> None:
    from controller.operations import Fill, Reclaim

    assert (Fill.op, Reclaim.op) == (wire.OP_FILL, wire.OP_RECLAIM)
    assert [PROGRAM[name] for name in ("OP_FILL", "OP_RECLAIM")] == [Fill.op, Reclaim.op]
