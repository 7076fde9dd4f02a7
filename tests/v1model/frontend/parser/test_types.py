from __future__ import annotations

import pytest

from tests.v1model.frontend.sources import declared, parsed
from v1model.errors import CompileError
from v1model.frontend import ast

GENERIC = "struct P<A, B> { A a; B b; } extern R<T> { R(); } header H { bit<8> x; } "


def type_of(text: str) -> ast.TypeRef:
    reference = declared(parsed(f"{GENERIC} typedef {text} X;"), "X").type_ref
    assert isinstance(reference, ast.TypeRef)
    return reference


def test_base_types() -> None:
    for name in ("bool", "error", "string", "match_kind", "bit", "int"):
        found = type_of(name)
        assert isinstance(found, ast.BaseTypeRef)
        assert (found.name, found.width) == (name, None)


@pytest.mark.parametrize("text", ["bit<8>", "int<8>", "varbit<8>", "bit<(4 + 4)>", "bit<4 + 4>"])
def test_width(text: str) -> None:
    found = type_of(text)
    assert isinstance(found, ast.BaseTypeRef)
    assert found.width is not None


def test_width_with_comparison() -> None:
    """Operators that begin with `>` end the width, others do not."""
    found = type_of("bit<3 < 4 ? 5 : 6>")
    assert isinstance(found, ast.BaseTypeRef)
    assert isinstance(found.width, ast.Ternary)


def test_arguments_that_close_together() -> None:
    found = type_of("P<bit<8>, P<bit<8>, R<bit<8>>>>")
    assert isinstance(found, ast.NamedTypeRef)
    assert len(found.arguments) == 2


def test_tuple_list_stack() -> None:
    assert isinstance(type_of("tuple<bit<8>, bool>"), ast.TupleTypeRef)
    assert isinstance(type_of("tuple<>"), ast.TupleTypeRef)
    found = type_of("list<tuple<bit<8>>>")
    assert isinstance(found, ast.TupleTypeRef)
    assert found.is_list
    assert isinstance(type_of("H[4]"), ast.StackTypeRef)


def test_size_behind_the_name() -> None:
    struct = declared(parsed(GENERIC + "struct S { H stack[4]; }"), "S")
    assert isinstance(struct.fields[0].type_ref, ast.StackTypeRef)


def test_absolute_name() -> None:
    found = type_of(".H")
    assert isinstance(found, ast.NamedTypeRef)
    assert found.absolute


def test_local_name_hides_a_type() -> None:
    """After `bit<8> H`, `H` is a variable, so `(H) - 1` is a difference and no cast."""
    function = declared(parsed(GENERIC + "void f() { bit<8> H = 1; bit<8> y = (H) - 1; }"), "f")
    assert isinstance(function.body.statements[1].declaration.value, ast.Binary)


def test_type_parameter_is_a_type() -> None:
    function = declared(parsed("T f<T>(in T x) { return (T) - x; }"), "f")
    assert isinstance(function.body.statements[0].value, ast.Cast)


@pytest.mark.parametrize("text", ["varbit", "list", "bit<", "tuple", "P<bit<8>", "unknown"])
def test_refused(text: str) -> None:
    with pytest.raises(CompileError):
        type_of(text)
