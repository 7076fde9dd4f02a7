from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.v1model.frontend.sources import declared, parsed
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.parser.expressions import PRECEDENCE

PREFIX = "struct S { bit<8> f; } enum E { m } extern T g<T>(in T x); "


def shape(node: Any) -> str:
    """An expression with all its parentheses."""
    match node:
        case ast.IntLiteral():
            return f"{node.width or ''}{'s' if node.signed else 'w' if node.width else ''}{node.value}"
        case ast.Name():
            return ("." if node.absolute else "") + node.name
        case ast.Member():
            return f"{shape(node.base)}.{node.member}"
        case ast.TypeName():
            return shape(node.ref)
        case ast.NamedTypeRef():
            arguments = ", ".join(map(shape, node.arguments))
            return node.name + (f"<{arguments}>" if arguments else "")
        case ast.BaseTypeRef():
            return node.name + (f"<{shape(node.width)}>" if node.width else "")
        case ast.Binary():
            return f"({shape(node.left)} {node.operator} {shape(node.right)})"
        case ast.Unary():
            return f"({node.operator}{shape(node.operand)})"
        case ast.Ternary():
            return f"({shape(node.condition)} ? {shape(node.then)} : {shape(node.otherwise)})"
        case ast.Cast():
            return f"(({shape(node.target)}){shape(node.operand)})"
        case ast.Index():
            return f"{shape(node.base)}[{shape(node.index)}]"
        case ast.Slice(is_indexed=True):
            return f"{shape(node.base)}[{shape(node.low)}+:{shape(node.high)}]"
        case ast.Slice():
            return f"{shape(node.base)}[{shape(node.high)}:{shape(node.low)}]"
        case ast.Call():
            types = f"<{', '.join(map(shape, node.type_arguments))}>" if node.type_arguments else ""
            return f"{shape(node.callee)}{types}({', '.join(map(shape, node.arguments))})"
        case ast.Argument():
            text = shape(node.value) if node.value else "_"
            return f"{node.name} = {text}" if node.name else text
        case ast.ListExpression():
            return "{" + ", ".join([*map(shape, node.elements), *(["..."] if node.has_rest else [])]) + "}"
        case ast.StructExpression():
            fields = [f"{name} = {shape(field)}" for name, field in node.fields.items()]
            return "{" + ", ".join([*fields, *(["..."] if node.has_rest else [])]) + "}"
        case ast.InvalidExpression():
            return "{#}"
        case ast.DefaultExpression():
            return "..."
        case ast.BoolLiteral() | ast.StringLiteral():
            return repr(node.value)
    raise AssertionError(type(node))


def expression(text: str) -> str:
    return shape(declared(parsed(f"{PREFIX} const bit<8> x = {text};"), "x").value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("a & b == c", "((a & b) == c)"),
        ("a == b < c", "(a == (b < c))"),
        ("a | b ^ c & d", "(a | (b ^ (c & d)))"),
        ("a << 1 + 2", "(a << (1 + 2))"),
        ("a >> 1 >> 2", "((a >> 1) >> 2)"),
        ("a || b && c", "(a || (b && c))"),
        ("a ++ b |+| c", "((a ++ b) |+| c)"),
        ("-a + ~b", "((-a) + (~b))"),
        ("!a.b", "(!a.b)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a < b", "(a < b)"),
        ("a < E.m", "(a < E.m)"),
        ("a < b > c", "((a < b) > c)"),
        ("(a) - b", "(a - b)"),
        ("(bit<8>) - b", "((bit<8>)(-b))"),
        ("(S) a", "((S)a)"),
        ("(bit<8>) a + b", "(((bit<8>)a) + b)"),
        ("(bit<(1+2)>) a", "((bit<(1 + 2)>)a)"),
        ("(S){1}", "((S){1})"),
        ("(E.m)", "E.m"),
        ("g<bit<8>>(a)", "g<bit<8>>(a)"),
        ("g<S>(a) < b", "(g<S>(a) < b)"),
        ("g<_>(a)", "g<_>(a)"),
        ("p.g<bit<8>>()", "p.g<bit<8>>()"),
        ("g(x = 1, y = _)", "g(x = 1, y = _)"),
        ("a[3:0]", "a[3:0]"),
        ("a[4 +: 8]", "a[4+:8]"),
        ("a[1][2].b", "a[1][2].b"),
        ("a[b ? 1 : 2 : 0]", "a[(b ? 1 : 2):0]"),
        (".a + .a", "(.a + .a)"),
        ("error.NoMatch", "error.NoMatch"),
        ("{}", "{}"),
        ("{1, 2,}", "{1, 2}"),
        ("{1, ...}", "{1, ...}"),
        ("{...}", "{...}"),
        ("{a = 1, b = {2}, ...}", "{a = 1, b = {2}, ...}"),
        ("{#}", "{#}"),
        ("...", "..."),
        ("apply.key.actions.state.type.entries.priority", "apply.key.actions.state.type.entries.priority"),
        ("this.x", "this.x"),
        ("true", "True"),
        (r'"a\"b\\"', "'a\"b\\\\'"),
    ],
)
def test_shapes(text: str, expected: str) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "value", "width", "signed"),
    [
        ("10", 10, None, False),
        ("0x_1F", 31, None, False),
        ("0b1010", 10, None, False),
        ("0o17", 15, None, False),
        ("0d019", 19, None, False),
        ("1_000", 1000, None, False),
        ("8w255", 255, 8, False),
        ("8w256", 0, 8, False),
        ("8s127", 127, 8, True),
        ("8s128", -128, 8, True),
        ("2s3", -1, 2, True),
        ("32w0xFFFF_FFFF", 0xFFFFFFFF, 32, False),
    ],
)
def test_integers(text: str, value: int, width: int | None, signed: bool) -> None:
    literal = declared(parsed(f"const bit<8> x = {text};"), "x").value
    assert (literal.value, literal.width, literal.signed) == (value, width, signed)


@pytest.mark.parametrize("text", ["9" * 5000, "1w" + "9" * 5000, "9999w1"])
def test_integers_too_large(text: str) -> None:
    with pytest.raises(CompileError):
        parsed(f"const bit<8> x = {text};")


TREES = st.recursive(
    st.sampled_from("abc"),
    lambda inner: st.tuples(inner, st.sampled_from(sorted(PRECEDENCE)), inner),
    max_leaves=12,
)


def written(tree: Any, minimum: int = 0) -> str:
    """A tree with as few parentheses as the precedence of operators allows."""
    if isinstance(tree, str):
        return tree
    left, operator, right = tree
    level = PRECEDENCE[operator]
    text = f"{written(left, level)} {operator} {written(right, level + 1)}"
    return f"({text})" if level < minimum else text


def full(tree: Any) -> str:
    return tree if isinstance(tree, str) else f"({full(tree[0])} {tree[1]} {full(tree[2])})"


@given(TREES)
def test_precedence_round_trip(tree: Any) -> None:
    assert expression(written(tree)) == full(tree)


def test_nested_too_deeply() -> None:
    with pytest.raises(CompileError, match="nested too deeply"):
        parsed(f"const bit<8> x = {'(' * 10000}1{')' * 10000};")
