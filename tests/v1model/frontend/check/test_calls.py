"""Which declaration a call means, its arguments, type arguments and result."""

from __future__ import annotations

from typing import Any

import pytest

from tests.v1model.frontend.sources import checked, declared
from v1model.frontend import ast
from v1model.frontend.check.show import show


def call(source: str, statement: str) -> Any:
    """The checked call of the only statement of a control."""
    program = checked(f"{source} control C(inout bit<8> x, in bit<16> y) {{ apply {{ {statement} }} }}")
    found = declared(program, "C").body.statements[0]
    return found.call if isinstance(found, ast.CallStatement) else found.value


def values(found: Any) -> list[object]:
    return [argument.value.constant for argument in found.arguments]


def test_arguments_by_name_and_default() -> None:
    source = "extern void f(in bit<8> a, in bit<8> b, in bit<8> c = 9);"
    for statement in ("f(1, 2);", "f(b = 2, a = 1);", "f(a = 1, c = 9, b = 2);"):
        found = call(source, statement)
        assert (found.kind, values(found)) == ("extern_function", [1, 2, 9])
        assert [argument.parameter.name for argument in found.arguments] == ["a", "b", "c"]


def test_optional_parameter() -> None:
    source = "extern void f(in bit<8> a, @optional in bit<8> b);"
    assert len(call(source, "f(1);").arguments) == 1
    assert len(call(source, "f(1, 2);").arguments) == 2


def test_placeholder_for_out() -> None:
    found = call("extern void f(out bit<8> a, out bit<8> b);", "f(_, x);")
    assert found.arguments[0].value is None


def test_overloads_by_number_and_name() -> None:
    source = "extern void f(); extern void f(in bit<8> a); extern void f(in bit<8> b);"
    assert call(source, "f();").declaration.parameters == []
    assert call(source, "f(b = 1);").declaration.parameters[0].name == "b"


def test_overloaded_methods_and_constructors() -> None:
    source = """
    extern E { E(); E(bit<8> n); bit<8> get(); bit<8> get(in bit<8> a); }
    control D(inout bit<8> x) { E() e1; E(5) e2; apply { x = e1.get(); x = e2.get(x); } }
    """
    control = declared(checked(source), "D")
    assert [len(local.arguments) for local in control.locals] == [0, 1]
    calls = [statement.value for statement in control.body.statements]
    assert [(found.kind, len(found.declaration.parameters)) for found in calls] == [
        ("extern_method", 0),
        ("extern_method", 1),
    ]


@pytest.mark.parametrize(
    ("statement", "inferred"),
    [
        ("g(x, y);", ["bit<8>", "bit<16>"]),
        ("g(1, y);", None),
        ("g<bit<4>, bit<16>>(1, y);", ["bit<4>", "bit<16>"]),
        ("g<_, bit<16>>(x, 1);", ["bit<8>", "bit<16>"]),
        ("g(x, {x, y});", ["bit<8>", "tuple<bit<8>, bit<16>>"]),
        ("g(4w1, true);", ["bit<4>", "bool"]),
    ],
)
def test_type_arguments(statement: str, inferred: list[str] | None) -> None:
    source = "extern void g<A, B>(in A a, in B b);"
    if inferred is None:
        with pytest.raises(Exception, match="cannot infer a width"):
            call(source, statement)
    else:
        assert [show(found) for found in call(source, statement).inferred] == inferred


def test_int_takes_the_type_of_its_fellow() -> None:
    found = call("extern void g<T>(in T a, in T b, in T c);", "g(1, x, 2);")
    assert [show(argument.value.type) for argument in found.arguments] == ["bit<8>"] * 3


def test_list_takes_the_type_of_its_fellow() -> None:
    source = "struct S { bit<8> a; } extern void g<T>(in T a, in T b);"
    found = call(source, "g({1}, (S){2});")
    assert [show(argument.value.type) for argument in found.arguments] == ["struct S"] * 2


def test_result_of_generic_functions() -> None:
    source = "extern T id<T>(in T a); extern T make<T>();"
    assert show(call(source, "x = id(x);").type) == "bit<8>"
    assert show(call(source, "x = make<bit<8>>();").type) == "bit<8>"
    assert show(call(source, "x = make();").type) == "bit<8>"


def test_generic_function_calls_another() -> None:
    source = "T first<T>(in T a, in T b) { return a; } T both<T>(in T a) { return first(a, a); }"
    found = call(source, "x = both(x);")
    assert (found.kind, show(found.inferred[0])) == ("function", "bit<8>")


def test_methods_of_generic_externs() -> None:
    source = """
    extern R<T> { R(bit<32> n); void read(out T v, in bit<32> i); T get<U>(in U u); }
    control D(inout bit<8> x) { R<bit<8>>(4) r; apply { r.read(x, 1); x = r.get(16w1); } }
    """
    read, get = declared(checked(source), "D").body.statements
    assert show(read.call.callee.base.type) == "R<bit<8>>"
    assert [show(found) for found in get.value.inferred] == ["bit<16>"]
    assert show(get.value.type) == "bit<8>"


def test_typedef_of_a_generic_extern() -> None:
    source = "extern R<T> { R(bit<32> n); } typedef R<bit<8>> R8; R8(4) r;"
    assert show(declared(checked(source), "r").type_ref.resolved) == "R<bit<8>>"


def test_generic_constructor_is_inferred() -> None:
    source = "extern R<T> { R(T initial); } R(16w4) r;"
    assert show(declared(checked(source), "r").type_ref.resolved) == "R<bit<16>>"


def test_package_is_inferred_from_blocks() -> None:
    source = """
    parser P<H>(out H h, in bit<8> x); control T<H, M>(inout H h, inout M m);
    package Top<H, M>(P<H> p, T<H, M> c);
    struct S { bit<8> a; }
    parser MyP(out S h, in bit<8> x) { state start { transition accept; } }
    control MyC(inout S h, inout bool m) { apply { } }
    Top(MyP(), MyC()) main;
    """
    assert show(declared(checked(source), "main").type_ref.resolved) == "package Top<struct S, bool>"


def test_actions() -> None:
    source = "control D(inout bit<8> x) { action a(inout bit<8> v, bit<8> d) { v = d; } apply { a(x, 3); } }"
    found = declared(checked(source), "D").body.statements[0].call
    assert (found.kind, found.declaration.name) == ("action", "a")


def test_apply_of_controls_and_tables() -> None:
    source = """
    control I(inout bit<8> v)(bit<8> n) { apply { v = n; } }
    control J(inout bit<8> v) { apply { } }
    control D(inout bit<8> x) {
        I(3) i;
        action a() { }
        table t { actions = { a; } }
        apply {
            i.apply(x);
            J.apply(x);
            if (t.apply().hit) { }
            switch (t.apply().action_run) { a: { } default: { } }
        }
    }
    """
    direct, static, test, switch = declared(checked(source), "D").body.statements
    assert [direct.call.kind, static.call.kind] == ["apply", "apply"]
    assert isinstance(static.call.callee.base, ast.TypeName)
    assert isinstance(test.condition.base.declaration, ast.TableDeclaration)
    assert switch.on_action
    assert switch.cases[0].labels[0].declaration.name == "a"


def test_built_in_methods() -> None:
    source = """
    header H { bit<8> a; }
    control D(inout H h, inout H[3] s) {
        apply { h.setValid(); h.setInvalid(); s.push_front(1); s.pop_front(2); s[1].setValid(); }
    }
    """
    statements = declared(checked(source), "D").body.statements
    assert {statement.call.kind for statement in statements} == {"builtin"}


def test_static_assert() -> None:
    found = checked('const bool ok = static_assert(8w3 == 3, "three");', "core.p4")
    assert declared(found, "ok").value.constant is True


def test_abstract_methods_and_this() -> None:
    source = """
    extern E<T> { E(); T base(in T x); abstract T run(in T x); }
    E<bit<8>>() e = { bit<8> run(in bit<8> x) { return this.base(x) + 1; } };
    """
    method = declared(checked(source), "e").members[0]
    assert method.body.statements[0].value.left.kind == "extern_method"
