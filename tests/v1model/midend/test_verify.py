"""The verifier finds what the middle end must never produce."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.programs import program
from v1model import ir
from v1model.midend.shapes import INTEGER
from v1model.midend.verify import InvariantError, verify

if TYPE_CHECKING:
    from pathlib import Path

BYTE = ir.Bits(8)
A = ir.Var("a", BYTE)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (ir.Assign(ir.Var("unknown", BYTE), ir.Const(1, BYTE)), "types that do not fit"),
        (ir.Assign(ir.Var("a", ir.Bits(9)), ir.Const(1, ir.Bits(9))), "types that do not fit"),
        (ir.Assign(A, ir.Const(1, ir.Bits(9))), "types differ"),
        (ir.Assign(A, ir.Binary("+", A, ir.Const(1, ir.Bits(9)), BYTE)), "types that do not fit"),
        (ir.Assign(A, ir.Cast(ir.Const(1, INTEGER), BYTE)), "compile-time integer"),
        (ir.If(A, ()), "is no"),
        (ir.Leave("nowhere"), "leave of nowhere"),
        (ir.Block("l", (ir.Block("l", ()),)), "used twice"),
        (ir.ApplyTable("none"), "no table none"),
        (ir.Assign(ir.Var("w", ir.Bits(32)), ir.PacketLength()), "types that do not fit"),
        (ir.Advance(A), "is no"),
    ],
)
def test_broken_statements_are_found(tmp_path: Path, statement: ir.Stmt, reason: str) -> None:
    good = program(tmp_path, "meta.x = 1;")
    locals_ = (A, ir.Var("w", ir.Bits(32)))
    broken = replace(good, ingress=replace(good.ingress, body=(statement,), locals=locals_))
    with pytest.raises(InvariantError, match=reason):
        verify(broken)


def test_a_state_that_does_not_exist_is_found(tmp_path: Path) -> None:
    good = program(tmp_path)
    state = replace(good.parser.states[0], transition=ir.Transition((), (((), "gone"),)))
    with pytest.raises(InvariantError, match="no state gone"):
        verify(replace(good, parser=replace(good.parser, states=(state,))))


def test_two_locals_of_one_name_are_found(tmp_path: Path) -> None:
    good = program(tmp_path)
    with pytest.raises(InvariantError, match="declared twice"):
        verify(replace(good, egress=replace(good.egress, locals=(A, A))))


def test_an_entry_with_a_foreign_action_is_found(tmp_path: Path) -> None:
    good = program(
        tmp_path, "t.apply();", locals_="action a() {} table t { actions = { a; } const default_action = a; }"
    )
    table = replace(good.tables[0], default_action=ir.ActionCall("other"))
    with pytest.raises(InvariantError, match="not its own"):
        verify(replace(good, tables=(table,)))
