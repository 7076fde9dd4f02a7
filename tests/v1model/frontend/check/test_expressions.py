"""Types and compile-time values of expressions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.v1model.frontend.sources import checked, constant, declared, value
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.show import show

FUNCTION = """
header H {{ bit<8> a; varbit<16> v; }}
header_union U {{ H first; H second; }}
enum Plain {{ a, b }}
enum bit<8> Code {{ one = 1, two = 2 }}
type bit<9> port_t;
struct S {{ bit<8> a; bool b; tuple<bit<4>, bool> t; H[3] stack; U u; }}
void f(inout S s, in bit<8> x, in bit<16> y, in int<8> i, in bool b, in port_t p, in Code c, in Plain e) {{
    {statement}
}}
"""


@pytest.mark.parametrize(
    ("expression", "target"),
    [
        ("x + 1", "bit<8>"),
        ("1 + x", "bit<8>"),
        ("x |+| x", "bit<8>"),
        ("i * -1", "int<8>"),
        ("x / 2", "bit<8>"),
        ("x << 3", "bit<8>"),
        ("x << y", "bit<8>"),
        ("i >> x", "int<8>"),
        ("x ++ y", "bit<24>"),
        ("i ++ x", "int<16>"),
        ("x[3:0]", "bit<4>"),
        ("x[2+:3]", "bit<3>"),
        ("y[x+:4]", "bit<4>"),
        ("i[7:7]", "bit<1>"),
        ("~x", "bit<8>"),
        ("-i", "int<8>"),
        ("x == 1", "bool"),
        ("x < 3 && !b || y != 2", "bool"),
        ("s == s", "bool"),
        ("s.stack[0] == s.stack[1]", "bool"),
        ("s.t == {1, true}", "bool"),
        ("e == Plain.a", "bool"),
        ("c == Code.one", "bool"),
        ("c == 1", "bool"),
        ("p == 1", "bool"),
        ("b ? x : 1", "bit<8>"),
        ("(bit<16>)x", "bit<16>"),
        ("(int<8>)x", "int<8>"),
        ("(bool)x[0:0]", "bool"),
        ("(bit<1>)b", "bit<1>"),
        ("(bool)1", "bool"),
        ("(bit<9>)p", "bit<9>"),
        ("(port_t)9w3", "port_t"),
        ("(port_t)(bit<9>)x", "port_t"),
        ("(bit<8>)c", "bit<8>"),
        ("(Code)x", "Code"),
        ("c + 1", "bit<8>"),
        ("c", "bit<8>"),
        ("s.a", "bit<8>"),
        ("s.t[0]", "bit<4>"),
        ("s.t[1]", "bool"),
        ("s.stack[x].a", "bit<8>"),
        ("s.stack.size", "bit<32>"),
        ("s.stack[0].isValid()", "bool"),
        ("s.u.isValid()", "bool"),
        ("s.u.second.a", "bit<8>"),
        ("Plain.b", "Plain"),
        ("f2(x)", "bit<8>"),
    ],
)
def test_types(expression: str, target: str) -> None:
    template = FUNCTION.replace("void f(", "bit<8> f2(in bit<8> z) {{ return z; }}\nvoid f(")
    program = checked(template.format(statement=f"{target} result = {expression};"))
    found = declared(program, "f").body.statements[0].declaration.value
    assert show(found.type) == target


def test_implicit_conversions_are_casts() -> None:
    program = checked(FUNCTION.format(statement="bit<8> result = x + 1; bit<8> other = c;"))
    first, second = [statement.declaration.value for statement in declared(program, "f").body.statements]
    assert isinstance(first.right, ast.Cast)
    assert (show(first.right.type), first.right.constant) == ("bit<8>", 1)
    assert isinstance(second, ast.Cast)


def test_shift_amount_keeps_its_own_width() -> None:
    program = checked(FUNCTION.format(statement="bit<8> r = x << 5; bit<8> s2 = x << y;"))
    first, second = [statement.declaration.value for statement in declared(program, "f").body.statements]
    assert show(first.right.type) == "bit<3>"
    assert show(second.right.type) == "bit<16>"


def test_slice_with_width_becomes_high_and_low() -> None:
    program = checked(FUNCTION.format(statement="bit<8> r = y[4+:8];"))
    found = declared(program, "f").body.statements[0].declaration.value
    assert (found.high.constant, found.low.constant, found.is_indexed) == (11, 4, False)


def test_slice_at_run_time_is_a_shift() -> None:
    program = checked(FUNCTION.format(statement="bit<4> r = y[x+:4];"))
    found = declared(program, "f").body.statements[0].declaration.value
    assert (found.high.constant, found.low.constant, found.base.operator) == (3, 0, ">>")
    with pytest.raises(CompileError, match="can be assigned"):
        checked(FUNCTION.format(statement="s.a[x+:4] = 1;"))


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("2 + 3 * 4", "int", 14),
        ("7 / 2", "int", 3),
        ("7 % 4", "int", 3),
        ("1 << 40", "int", 1 << 40),
        ("-5 >> 1", "int", -3),
        ("256", "bit<8>", 0),
        ("-1", "bit<8>", 255),
        ("-1", "int<8>", -1),
        ("8w200 + 100", "bit<8>", 44),
        ("8w200 |+| 100", "bit<8>", 255),
        ("8w3 |-| 5", "bit<8>", 0),
        ("8s127 |+| 1", "int<8>", 127),
        ("-8s128 |-| 1", "int<8>", -128),
        ("8s127 + 1", "int<8>", -128),
        ("~8w1", "bit<8>", 254),
        ("8w1 << 8", "bit<8>", 0),
        ("-8s2 >> 100", "int<8>", -1),
        ("4w0xA ++ 4w0xB", "bit<8>", 0xAB),
        ("-4s1 ++ 4w0", "int<8>", -16),
        ("16w0xABCD[11:4]", "bit<8>", 0xBC),
        ("(bit<4>)8w0xAB", "bit<4>", 0xB),
        ("(bit<8>)(int<8>)-1", "bit<8>", 255),
        ("(int<8>)8w255", "int<8>", -1),
        ("(bit<16>)8w255", "bit<16>", 255),
        ("(int<16>)8s255", "int<16>", -1),
        ("(bool)1w1", "bool", True),
        ("(bit<1>)true", "bit<1>", 1),
        ("3 < 4 && 4 <= 4 && !(5 > 6)", "bool", True),
        ("false && true || true", "bool", True),
        ("8w3 == 3", "bool", True),
        ("true ? 1 : 2", "int", 1),
        ("8w5", "int", 5),
        ("{8w1, true}", "tuple<bit<8>, bool>", (1, True)),
        ("{8w1, 8w2}[1]", "bit<8>", 2),
    ],
)
def test_values(text: str, kind: str, expected: object) -> None:
    assert value(text, kind) == expected


def test_values_of_members() -> None:
    source = """
    enum Plain { a, b, c }
    enum bit<8> Code { one = 1, top = 8w255 }
    error { First, Second }
    struct S { bit<8> a; bool b; }
    const S s = { b = true, a = 7 };
    const Plain x1 = Plain.c;
    const Code x2 = Code.top;
    const error x3 = error.Second;
    const bit<8> x4 = s.a + 1;
    const bit<8> x5 = Code.one + Code.top;
    """
    assert [constant(source, f"x{n}") for n in range(1, 6)] == [2, 255, 1, 8, 0]
    assert constant(source, "s") == (7, True)


def test_sizes() -> None:
    source = """
    header H { bit<9> a; bool b; varbit<16> v; }
    struct S { H h; bit<8> x; H[2] s; }
    header_union U { H h; }
    const int x1 = H.minSizeInBits();
    const int x2 = H.maxSizeInBits();
    const int x3 = H.minSizeInBytes();
    const int x4 = S.maxSizeInBytes();
    const bit<32> x5 = U.maxSizeInBits();
    """
    assert [constant(source, f"x{n}") for n in range(1, 6)] == [10, 26, 2, 11, 26]


def test_strings() -> None:
    assert value('"a" ++ "b"', "string") == "ab"


def test_default_of_the_rest() -> None:
    source = "struct S {{ bit<8> a; bit<8> b; }} void f() {{ S s = {value}; }}"
    for text in ("{1, ...}", "{a = 1, ...}", "{...}", "..."):
        found = declared(checked(source.format(value=text)), "f").body.statements[0].declaration.value
        assert show(found.type) == "struct S"
        assert found.constant is None


def test_lists_become_what_is_wanted() -> None:
    source = """
    header H { bit<8> a; }
    struct In { bit<8> x; tuple<bit<8>, bool> t; }
    struct Out { In i; H h; H[2] s; }
    const Out o = { {1, {2, true}}, {3}, {{4}, {5}} };
    const list<bit<8>> l = {6, 7};
    """
    found = declared(checked(source), "o").value
    assert [show(element.type) for element in found.elements] == [
        "struct In",
        "header H",
        "header H[2]",
    ]
    assert show(declared(checked(source), "l").value.type) == "list<bit<8>>"


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
WIDTH = 8
SUMS = st.recursive(
    st.integers(min_value=0, max_value=2**WIDTH - 1),
    lambda inner: st.tuples(inner, st.sampled_from(sorted(OPERATORS)), inner),
    max_leaves=8,
)


@given(SUMS, st.booleans())
def test_arithmetic_wraps_at_each_step(tree: Any, signed: bool) -> None:
    def wrapped(number: int) -> int:
        number %= 2**WIDTH
        return number - 2**WIDTH if signed and number >= 2 ** (WIDTH - 1) else number

    def evaluate(node: Any) -> int:
        if isinstance(node, int):
            return wrapped(node)
        return wrapped(OPERATORS[node[1]](evaluate(node[0]), evaluate(node[2])))

    def written(node: Any) -> str:
        if isinstance(node, int):
            return f"{WIDTH}{'s' if signed else 'w'}{node}"
        return f"({written(node[0])} {node[1]} {written(node[2])})"

    assert value(written(tree), f"{'int' if signed else 'bit'}<{WIDTH}>") == evaluate(tree)
