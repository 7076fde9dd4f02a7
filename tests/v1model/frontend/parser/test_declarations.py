from __future__ import annotations

import pytest

from tests.v1model.frontend.sources import declared, parsed
from v1model.frontend import ast


@pytest.mark.parametrize("kind", ["struct", "header", "header_union"])
def test_records(kind: str) -> None:
    found = declared(parsed(f"{kind} S<T> {{ @hidden bit<8> a; T b; }}"), "S")
    assert (found.kind, found.type_parameters) == (kind, ["T"])
    assert [field.name for field in found.fields] == ["a", "b"]
    assert found.fields[0].annotations[0].name == "hidden"


def test_enums() -> None:
    plain = declared(parsed("enum E { a, b, }"), "E")
    assert (list(plain.members), plain.underlying) == (["a", "b"], None)
    serializable = declared(parsed("enum bit<8> E { a = 1, b = 2 }"), "E")
    assert serializable.underlying is not None
    assert all(value is not None for value in serializable.members.values())


def test_errors_and_match_kinds() -> None:
    program = parsed("error { A, B } match_kind { exact, lpm, }")
    assert declared(program, "error").members == ["A", "B"]
    assert declared(program, "match_kind").members == ["exact", "lpm"]


def test_typedefs() -> None:
    program = parsed("typedef bit<8> a_t; type bit<9> b_t; typedef struct S { bit<8> x; } s_t;")
    assert not declared(program, "a_t").is_new
    assert declared(program, "b_t").is_new
    assert [found.name for found in program.declarations] == ["a_t", "b_t", "S", "s_t"]


def test_extern_object() -> None:
    found = declared(
        parsed("extern E<T> { E(bit<8> n); @pure void run(in T x); abstract T make<U>(in U y); }"), "E"
    )
    assert found.type_parameters == ["T"]
    assert [method.name for method in found.methods] == ["E", "run", "make"]
    assert [method.return_type is None for method in found.methods] == [True, False, False]
    assert [method.is_abstract for method in found.methods] == [False, False, True]


def test_extern_functions() -> None:
    program = parsed("extern void f(in bit<8> a); extern T g<T>(out T x, in bool y = true); extern E; ")
    assert [found.name for found in program.declarations] == ["f", "g"]
    assert [parameter.direction for parameter in declared(program, "g").parameters] == ["out", "in"]
    assert declared(program, "g").parameters[1].default is not None


def test_extern_function_that_returns_an_extern() -> None:
    program = parsed("extern E<T> { E(); } extern E<bit<8>> make(in bit<8> x);")
    assert isinstance(declared(program, "make"), ast.FunctionDeclaration)


def test_parser() -> None:
    found = declared(
        parsed(
            """
            parser P(in bit<8> a)(bool b) {
                const bit<8> limit = 4;
                bit<8> x;
                value_set<bit<8>>(4) known;
                state start {
                    x = a;
                    transition select(x, a) {
                        (1, _): accept;
                        (2 &&& 3, 4 .. 5): next;
                        known: next;
                        default: reject;
                    }
                }
                state next { }
            }
            """
        ),
        "P",
    )
    assert [type(local) for local in found.locals] == [
        ast.ConstantDeclaration,
        ast.VariableDeclaration,
        ast.ValueSetDeclaration,
    ]
    start, following = found.states
    assert [case.state for case in start.transition.cases] == ["accept", "next", "next", "reject"]
    assert [len(case.keys) for case in start.transition.cases] == [2, 2, 1, 1]
    assert following.transition is None
    assert len(found.constructor_parameters) == 1


def test_parser_and_control_types() -> None:
    program = parsed("parser P<H>(out H h); control C<H>(inout H h);")
    assert declared(program, "P").states is None
    assert declared(program, "C").body is None


def test_control() -> None:
    found = declared(
        parsed(
            """
            control C(inout bit<8> x)(bit<8> n) {
                action a(bit<8> y) { x = y; }
                bit<8> local = 1;
                table t { actions = { a; } }
                apply @atomic { t.apply(); }
            }
            """
        ),
        "C",
    )
    assert [local.name for local in found.locals] == ["a", "local", "t"]
    assert found.body.annotations[0].name == "atomic"


def test_package_and_instance() -> None:
    program = parsed("control T(); package Top<M>(T a, T b = T()); control C() { apply { } } Top(C()) main;")
    assert declared(program, "Top").type_parameters == ["M"]
    assert isinstance(declared(program, "main"), ast.Instantiation)


def test_instance_with_methods() -> None:
    found = declared(
        parsed(
            """
            extern E { E(); abstract bit<8> run(in bit<8> x); }
            E() e = { E() inner; bit<8> run(in bit<8> x) { return this.run(x); } };
            """
        ),
        "e",
    )
    assert [type(member) for member in found.members] == [ast.Instantiation, ast.FunctionDeclaration]


def test_empty_declarations() -> None:
    assert parsed(";;").declarations == []
