"""Scopes, declared types, parsers, tables, statements: what the checker fills in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.v1model.frontend.sources import checked, declared
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.show import show


def test_generic_structs() -> None:
    source = """
    struct Pair<A, B> { A first; B second; }
    header H<T> { T x; }
    struct S { Pair<bit<8>, Pair<bool, bit<4>>> p; H<bit<16>> h; }
    """
    fields = declared(checked(source), "S").fields
    pair, header = [field.type_ref.resolved for field in fields]
    assert show(pair) == "struct Pair<bit<8>, struct Pair<bool, bit<4>>>"
    assert [show(kind) for _, kind in pair.fields] == ["bit<8>", "struct Pair<bool, bit<4>>"]
    assert [show(kind) for _, kind in header.fields] == ["bit<16>"]


def test_same_arguments_give_the_same_type() -> None:
    source = """
    struct Box<T> { T x; }
    void f(in Box<bit<8>> a) { Box<bit<8>> b = a; }
    """
    checked(source)
    with pytest.raises(CompileError, match="expected struct Box<bit<8>>, found struct Box<bit<16>>"):
        checked(source.replace("in Box<bit<8>> a", "in Box<bit<16>> a"))


def test_typedefs_are_transparent_and_new_types_are_not() -> None:
    program = checked("typedef bit<8> a_t; type a_t b_t; struct S { a_t a; b_t b; }")
    first, second = [field.type_ref.resolved for field in declared(program, "S").fields]
    assert (show(first), show(second), show(second.base)) == ("bit<8>", "b_t", "bit<8>")


def test_inner_scopes_hide_outer_names() -> None:
    checked(
        """
        const bit<8> x = 1;
        control C(inout bit<16> y) {
            bit<16> x = 2;
            bit<16> y = x;
            apply { bit<32> x = 3; { bool x = true; if (x) { } } y = 1; }
        }
        """
    )


def test_absolute_names() -> None:
    program = checked("const bit<8> x = 1; bit<8> f() { bit<8> x = 2; return .x; }")
    function = declared(program, "f")
    assert function.body.statements[1].value.declaration is declared(program, "x")


def test_errors_and_match_kinds_add_up() -> None:
    program = checked(
        "error { A } error { B } const error x = error.B; match_kind { one } match_kind { two }"
    )
    assert declared(program, "x").value.constant == 1


def test_annotations_have_values() -> None:
    program = checked("const bit<8> one = 1; struct S { @field_list(one, 2) bit<8> a; @free(x y) bit<8> b; }")
    first, second = declared(program, "S").fields
    assert [found.constant for found in first.annotations[0].expressions] == [1, 2]
    assert second.annotations[0].text == "x y"


# --- parsers -----------------------------------------------------------------------------

PARSER = """
enum bit<8> Kind {{ a = 1, b = 2 }}
header H {{ bit<8> x; Kind k; varbit<32> v; }}
struct S {{ H h; H[2] s; }}
parser P(packet_in p, out S s, in bool flag, in error e) {{
    value_set<bit<8>>(4) known;
    value_set<tuple<bit<8>, bool>>(4) pairs;
    state start {{
        p.extract(s.s.next, 8);
        bit<16> ahead = p.lookahead<bit<16>>();
        p.advance((bit<32>)s.s.last.x);
        verify(s.s.lastIndex < 2, error.StackOutOfBounds);
        transition {transition}
    }}
}}
"""


def cases(transition: str) -> Any:
    program = checked(PARSER.format(transition=transition), "core.p4")
    return declared(program, "P").states[0].transition.cases


def test_select() -> None:
    found = cases(
        """select(s.h.x, s.h.k) {
            (1, Kind.a): accept;
            (1 &&& 3, Kind.a &&& 1): start;
            (4 .. 8, _): start;
            default: reject;
        }"""
    )
    assert [[show(key.type) for key in case.keys] for case in found] == [
        ["bit<8>", "Kind"],
        ["set<bit<8>>", "set<bit<8>>"],
        ["set<bit<8>>", "Kind"],
        ["bit<8>", "Kind"],
    ]


def test_select_on_other_types() -> None:
    cases("select(flag, e) { (true, error.NoError): accept; }")
    cases("select({s.h.x, flag}) { {1, true}: accept; }")


def test_value_sets() -> None:
    assert show(cases("select(s.h.x) { known: accept; }")[0].keys[0].type) == "set<bit<8>>"
    found = cases("select(s.h.x, flag) { pairs: accept; (known, true): accept; }")
    assert [len(case.keys) for case in found] == [1, 2]


def test_sub_parser() -> None:
    checked(
        """
        parser Inner(packet_in p, out bit<8> x)(bit<8> n) { state start { x = n; transition accept; } }
        parser P(packet_in p, out bit<8> x) {
            Inner(4) inner;
            state start { inner.apply(p, x); transition accept; }
        }
        """,
        "core.p4",
    )


# --- tables ------------------------------------------------------------------------------

CONTROL = """
control C(inout bit<8> x, inout bit<16> y, in bool b) {{
    action a(inout bit<8> v, bit<8> d, bool e) {{ v = d; }}
    action n() {{ }}
    table t {{
        key = {{ x: exact; y: ternary; b: exact @name("flag"); x & 0xF: lpm; }}
        actions = {{ a(x); n; }}
        {more}
    }}
    apply {{ t.apply(); }}
}}
"""


def table(more: str) -> Any:
    return declared(checked(CONTROL.format(more=more), "core.p4"), "C").locals[2]


def test_key_types() -> None:
    found = table("")
    assert [show(key.expression.type) for key in found.keys] == ["bit<8>", "bit<16>", "bool", "bit<8>"]


@pytest.mark.parametrize("text", ["a(4, true)", "a(x, 4, true)", "a(e = true, d = 4)"])
def test_action_arguments_follow_the_bound_ones(text: str) -> None:
    call = table(f"default_action = {text};").default_action
    assert [argument.parameter.name for argument in call.arguments] == ["v", "d", "e"]
    assert [argument.value.constant for argument in call.arguments] == [None, 4, True]


def test_default_action_without_arguments() -> None:
    assert table("const default_action = n;").default_action.declaration.name == "n"


def test_entries() -> None:
    found = table(
        """const entries = {
            (1, 2 &&& 3, true, _): n();
            priority = 3: (2, _, false, 4 &&& 0xF): a(5, true);
        }"""
    )
    assert [show(key.type) for key in found.entries[0].keys] == ["bit<8>", "set<bit<16>>", "bool", "bit<8>"]
    assert found.entries[1].priority.constant == 3
    assert found.entries[1].action.declaration.name == "a"


def test_properties_are_constant() -> None:
    found = table("size = 4 * 256; support_timeout = true;")
    assert found.properties["size"].value.constant == 1024
    assert found.properties["support_timeout"].value.constant is True


def test_size_from_a_constructor_parameter() -> None:
    checked("control C()(bit<32> n) { action a() { } table t { actions = { a; } size = n; } apply { } }")


# --- statements --------------------------------------------------------------------------


def body(text: str) -> list[Any]:
    source = f"""
    header H {{ bit<8> a; }}
    void f(inout bit<8> x, inout H h, inout H[4] s, inout tuple<bit<8>, bool> t) {{ {text} }}
    """
    return list(declared(checked(source), "f").body.statements)


def test_left_sides() -> None:
    body("x = 1; x[3:0] = 2; h.a = 3; s[x].a = 4; s[1] = h; t[0] = 5; h = {6}; (x) = 7;")


def test_compound_assignments() -> None:
    add, shift = body("x += 1; x <<= 3;")
    assert (show(add.value.type), add.operator) == ("bit<8>", "+")
    assert show(shift.value.type) == "bit<2>"


def test_loops() -> None:
    body(
        """
        for (bit<8> i = 0; i < 4; i = i + 1) { if (i == 2) { continue; } x = x + i; break; }
        for (bit<8> i in 1 .. 5) { x = i; }
        for (H e in s) { x = e.a; }
        for (bit<8> i in (list<bit<8>>){1, 2}) { x = i; }
        for (bit<8> i in {1, 2, x}) { x = i; }
        """
    )


def test_switch_on_values() -> None:
    (found,) = body("switch (x) { 1: 2: { x = 3; } default: { } }")
    assert not found.on_action
    assert [case.labels[0].constant for case in found.cases] == [1, 2, None]


def test_every_path_returns() -> None:
    checked("bit<8> f(in bool b) { if (b) { return 1; } else { return 2; } }")
    checked("bit<8> f(in bit<8> x) { switch (x) { 1: { return 1; } default: { return 2; } } }")


def test_nested_too_deeply(tmp_path: Any) -> None:
    from v1model.frontend import load

    path = tmp_path / "deep.p4"
    path.write_text(f"const int x = {' + '.join(['1'] * 20000)};\n")
    with pytest.raises(CompileError, match="nested too deeply"):
        load(path)


def test_names_are_filled_in() -> None:
    (found,) = body("x = h.a;")
    assert isinstance(found.value.base, ast.Name)
    assert isinstance(found.value.base.declaration, ast.Parameter)


@pytest.mark.parametrize("kind", ["struct T{n} {{ T{m} a; T{m} b; }}", "typedef tuple<T{m}, T{m}> T{n};"])
def test_types_of_two_of_the_one_before_take_no_time(kind: str) -> None:
    """Each that was too large was looked through all the same: minutes for 30 KB."""
    types = "".join(kind.format(n=n, m=n - 1) + "\n" for n in range(1, 1000))
    with pytest.raises(CompileError, match="more than 65536 fields"):
        checked("struct T0 { bit<8> a; }\n" + types)
