"""Calls of v1model's externs, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.programs import lowered, program
from v1model import ir
from v1model.errors import CompileError, UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path


def calls(body: tuple[ir.Stmt, ...]) -> list[ir.ExternCall]:
    return [statement for statement in body if isinstance(statement, ir.ExternCall)]


@pytest.mark.parametrize(("index", "kept"), [(1, ["x"]), (2, ["x", "y"]), (3, [])])
def test_field_lists_are_expanded(tmp_path: Path, index: int, kept: list[str]) -> None:
    ir_program = program(tmp_path, f"resubmit_preserving_field_list({index});")
    (call,) = calls(ir_program.ingress.body)
    assert call.arguments == (ir.Const(index, ir.Bits(8)),)
    assert [field.field for field in call.kept if isinstance(field, ir.Member)] == kept


def test_clone_names_its_type_and_session(tmp_path: Path) -> None:
    ir_program = program(tmp_path, "clone_preserving_field_list(CloneType.I2E, 5, 1);")
    (call,) = calls(ir_program.ingress.body)
    assert [a.value for a in call.arguments if isinstance(a, ir.Const)] == [0, 5, 1]


def test_digest_is_named_after_its_type(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "digest<report_t>(1, {meta.x, 7}); digest(1, {meta.w, meta.y});",
        declarations="struct report_t { bit<8> x; bit<16> n; }",
    )
    assert [digest.name for digest in ir_program.digests] == ["report_t", "digest_0"]
    assert [call.instance for call in calls(ir_program.ingress.body)] == ["report_t", "digest_0"]


def test_registers_read_into_places(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "r.read(meta.w, (bit<32>)meta.x); r.write(0, meta.w + 1);",
        locals_="register<bit<32>>(8) r;",
    )
    read, write = calls(ir_program.ingress.body)
    assert (read.instance, read.name, read.arguments[0]) == (
        "ing.r",
        "read",
        ir.Member(ir.Var("metadata", ir_program.metadata), "w", ir.Bits(32)),
    )
    assert write.name == "write"


def test_hash_takes_a_list_and_the_algorithm_s_index(tmp_path: Path) -> None:
    ir_program = program(tmp_path, "hash(meta.w, HashAlgorithm.crc16, 32w0, {meta.x, meta.y}, 32w100);")
    (call,) = calls(ir_program.ingress.body)
    assert ir_program.enums["HashAlgorithm"][call.arguments[1].value] == "crc16"  # type: ignore[union-attr, index]


def test_emit_of_the_headers_is_one_emit(tmp_path: Path) -> None:
    ir_program = program(tmp_path)
    assert ir_program.deparser.body == (ir.Emit(ir.Var("headers", ir_program.headers)),)


@pytest.mark.parametrize(
    ("body", "egress", "place"),
    [
        ("", "resubmit_preserving_field_list(1);", "ingress"),
        ("", "digest<bit<8>>(1, meta.x);", "ingress"),
    ],
)
def test_what_has_no_effect_in_a_block_is_refused(tmp_path: Path, body: str, egress: str, place: str) -> None:
    with pytest.raises(CompileError, match=place) as refused:
        program(tmp_path, body, egress=egress)
    assert refused.value.span is not None


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"body": "f(meta.x);", "declarations": "extern void f(inout bit<8> v);"}, "extern function f"),
        ({"locals_": "box() b;", "declarations": "extern box { box(); }"}, "extern box"),
        ({"locals_": "register<pair_t>(4) r;"}, "register"),
        ({"locals_": "register<bit<8>>(0x7fffffff) r;"}, "size"),
        ({"body": 'static_assert(1 > 2, "never");'}, "never"),
    ],
)
def test_unsupported_externs_are_refused_with_a_place(
    tmp_path: Path, parts: dict[str, str], reason: str
) -> None:
    with pytest.raises(CompileError, match=reason) as refused:
        program(tmp_path, **parts)
    assert refused.value.span is not None


def test_controller_headers_and_translations(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "t.apply();",
        declarations="""
            @controller_header("packet_in") header in_t { bit<9> port; bit<7> pad; }
            @p4runtime_translation("example.org/port", string) type bit<9> port_t;
            @p4runtime_translation("example.org/vrf", bit<32>) type bit<10> vrf_t;
        """,
        locals_="""
            action go(vrf_t v) {}
            table t { key = { (port_t)std.ingress_port : exact @name("p"); } actions = { go; NoAction; } }
        """,
    )
    ((header, name, annotations),) = ir_program.controller_headers
    assert (header.name, name, len(annotations)) == ("in_t", "packet_in", 2)
    assert [(t.name, t.uri, t.sdn_bits, t.sdn_string) for t in ir_program.translations] == [
        ("port_t", "example.org/port", None, True),
        ("vrf_t", "example.org/vrf", 32, False),
    ]


def test_a_program_without_main_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="main"):
        lowered(tmp_path, "#include <core.p4>\n#include <v1model.p4>\n")


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    text = "#include <core.p4>\ncontrol c(inout bit<8> v); package P(c x);\n"
    text += "control a(inout bit<8> v) { apply {} } P(a()) main;\n"
    with pytest.raises(UnsupportedError, match="V1Switch"):
        lowered(tmp_path, text)
