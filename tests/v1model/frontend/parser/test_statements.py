from __future__ import annotations

from typing import Any

import pytest

from tests.v1model.frontend.sources import declared, parsed
from v1model.frontend import ast


def statements(body: str) -> list[Any]:
    source = f"header H {{ bit<8> x; }} control S() {{ apply {{ }} }} void f() {{ {body} }}"
    return list(declared(parsed(source), "f").body.statements)


@pytest.mark.parametrize("operator", ["", "+", "-", "*", "/", "%", "|+|", "|-|", "<<", ">>", "&", "|", "^"])
def test_assignments(operator: str) -> None:
    (found,) = statements(f"a.b[3:0] {operator}= 1;")
    assert isinstance(found, ast.Assignment)
    assert found.operator == operator


def test_calls() -> None:
    found = statements("a(); a.b(1); a<bit<8>>(1); S.apply(); .a();")
    assert all(isinstance(statement, ast.CallStatement) for statement in found)


def test_declarations() -> None:
    found = statements("bit<8> a; H h = {1}; const bool b = true; H[2] s; @x bit<8> c;")
    assert [statement.declaration.name for statement in found] == ["a", "h", "b", "s", "c"]


def test_if_else_binds_to_the_nearest() -> None:
    (found,) = statements("if (a) if (b) x(); else y();")
    assert found.otherwise is None
    assert found.then.otherwise is not None


def test_switch() -> None:
    (found,) = statements("switch (a) { 1: 2: { x(); } default: { } }")
    assert [case.body is None for case in found.cases] == [True, False, False]
    assert isinstance(found.cases[2].labels[0], ast.DefaultExpression)


def test_for() -> None:
    (found,) = statements("for (bit<8> i = 0, j = 1; i < 8; i += 1, j = j - 1) { break; continue; }")
    assert isinstance(found, ast.For)
    assert (len(found.initial), len(found.update)) == (2, 2)


def test_for_without_parts() -> None:
    (found,) = statements("for (; true;) { }")
    assert isinstance(found, ast.For)
    assert (found.initial, found.update) == ([], [])


def test_for_in() -> None:
    over_range, over_stack = statements("for (bit<8> i in 1 .. n) { } for (@x H h in stack) x();")
    assert isinstance(over_range, ast.ForIn)
    assert isinstance(over_range.collection, ast.Binary)
    assert over_range.collection.operator == ".."
    assert isinstance(over_stack, ast.ForIn)
    assert over_stack.variable.name == "h"


def test_jumps_and_blocks() -> None:
    found = statements("return; return 1; exit; ; { } @atomic { }")
    assert [type(statement) for statement in found] == [
        ast.Return,
        ast.Return,
        ast.Exit,
        ast.Empty,
        ast.Block,
        ast.Block,
    ]
    assert found[5].annotations[0].name == "atomic"
