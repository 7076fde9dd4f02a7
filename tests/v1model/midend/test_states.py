"""Parsers: sub-parsers inlined, transitions, locals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.interpreter import VALID, Machine
from tests.v1model.midend.programs import program
from v1model.errors import CompileError, UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

SUB = """
parser two(packet_in packet, out h_t first, inout bit<8> seen) {
    state start {
        packet.extract(first);
        seen = seen + first.a;
        transition select(first.b) { 0xff : reject; _ : accept; }
    }
}
"""


@pytest.fixture
def nested(tmp_path: Path) -> Machine:
    return Machine(
        program(
            tmp_path,
            declarations=SUB,
            parser_locals="two() again;",
            states="""
                state start {
                    two.apply(packet, hdr.h, meta.x);
                    again.apply(packet, hdr.g, meta.x);
                    transition select(meta.x) { 0 .. 9 : last; _ : accept; }
                }
                state last { again.apply(packet, hdr.s[2], meta.x); transition accept; }
            """,
        )
    )


def test_sub_parsers_go_on_where_they_were_applied(nested: Machine) -> None:
    assert nested.parse(bytes([1, 2, 3, 4, 5, 6])) == "accept"
    assert (nested.headers["h"]["a"], nested.headers["g"]["b"], nested.headers["s"][2]["a"]) == (1, 4, 5)
    assert nested.metadata["x"] == 9


def test_a_sub_parser_that_accepts_does_not_end_the_parser(nested: Machine) -> None:
    assert nested.parse(bytes([10, 0, 20, 0])) == "accept"
    assert nested.metadata["x"] == 30
    assert nested.headers["s"][2][VALID] is False


def test_a_sub_parser_that_rejects_ends_the_parser(nested: Machine) -> None:
    assert nested.parse(bytes([1, 0xFF, 3, 4])) == "reject"


def test_states_of_every_place_of_apply_are_its_own(nested: Machine) -> None:
    names = [state.name for state in nested.program.parser.states]
    assert len(names) == len(set(names))
    assert len(names) == 2 + 3 * 2  # the own two, and for each of three applies its start and what follows


def test_initialisers_run_once_although_the_start_state_loops(tmp_path: Path) -> None:
    machine = Machine(
        program(
            tmp_path,
            parser_locals="bit<8> rounds = 3;",
            states="""
                state start {
                    rounds = rounds - 1;
                    meta.x = meta.x + 1;
                    transition select(rounds) { 0 : accept; _ : start; }
                }
            """,
        )
    )
    assert machine.parse(b"") == "accept"
    assert machine.metadata["x"] == 3


def test_stack_and_lookahead(tmp_path: Path) -> None:
    machine = Machine(
        program(
            tmp_path,
            states="""
                state start {
                    packet.extract(hdr.s.next);
                    transition select(packet.lookahead<bit<8>>(), hdr.s[0].a) {
                        (9, _) : more;
                        (0x10 &&& 0xf0, 1) : accept;
                        default : reject;
                    }
                }
                state more { packet.extract(hdr.s.next); transition accept; }
            """,
        )
    )
    assert machine.parse(bytes([1, 2, 9, 7])) == "accept"
    assert machine.headers["s"][1] == {VALID: True, "a": 9, "b": 7}


@pytest.mark.parametrize(("packet", "verdict"), [([1, 2, 0x1F], "accept"), ([2, 2, 0x1F], "reject")])
def test_masks_in_a_transition(tmp_path: Path, packet: list[int], verdict: str) -> None:
    machine = Machine(
        program(
            tmp_path,
            states="""
                state start {
                    packet.extract(hdr.h);
                    transition select(packet.lookahead<bit<8>>(), hdr.h.a) { (0x10 &&& 0xf0, 1) : accept; }
                }
            """,
        )
    )
    assert machine.parse(bytes(packet)) == verdict


def test_a_sub_parser_in_a_condition_is_refused(tmp_path: Path) -> None:
    states = "state start { if (meta.flag) { two.apply(packet, hdr.h, meta.x); } transition accept; }"
    with pytest.raises(UnsupportedError, match="parser applied") as refused:
        program(tmp_path, declarations=SUB, states=states)
    assert refused.value.span is not None


def test_next_outside_of_a_parser_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="parser"):
        program(tmp_path, "hdr.s.next.a = 1;")


def test_lookahead_of_a_struct_with_a_stack(tmp_path: Path) -> None:
    machine = Machine(
        program(
            tmp_path,
            declarations="struct ahead_t { bit<4> top; bit<4> rest; h_t[2] pair; }",
            states="""
                state start {
                    ahead_t ahead = packet.lookahead<ahead_t>();
                    hdr.s[1] = ahead.pair[1];
                    meta.x = (bit<8>)ahead.top;
                    transition accept;
                }
            """,
        )
    )
    assert machine.parse(bytes([0x5F, 1, 2, 3, 4])) == "accept"
    assert machine.headers["s"][1] == {VALID: True, "a": 3, "b": 4}
    assert machine.metadata["x"] == 5
