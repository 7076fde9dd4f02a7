"""What docs/embedded-switch.md lists as left out is refused in the words that stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.v1model.refused_program import program
from v1model.compile import compile_p4
from v1model.errors import CompileError

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "embedded-switch.md"
# A row of the table: what stays out | `error: what a user sees`
ROW = re.compile(r"^\| (?P<what>[^|]+) \| `error: (?P<message>.+)` \|$", re.MULTILINE)

REFUSED = {
    "extern types beyond v1model's, without `--externs`": program(
        locals="Checksum16() sum;", apply="bit<16> s = sum.get({ meta.low });"
    ),
    "extern functions beyond v1model's, without `--externs`": program(
        types="extern void log_it(in bit<8> x);", apply="log_it(1);"
    ),
    "registers of structs": program(locals="register<pair_t>(4) cells;", apply="cells.write(0, {1, 2});"),
    "arrays of anything but headers and header unions": program(metadata="pair_t[4] pairs;"),
    "sub-parsers applied inside `if`": program(
        parser_locals="Inner() inner;", state="if (hdr.byte.value == 1) { inner.apply(packet, hdr.byte); }"
    ),
    "several lpm keys in a table": program(
        locals="table t { key = { meta.low: lpm; meta.high: lpm; } actions = { NoAction; } }",
        apply="t.apply();",
    ),
    "generic parsers with a body": program(
        types="parser Any<H>(packet_in packet, out H hdr) { state start { transition accept; } }"
    ),
    "generic controls with a body": program(types="control Any<H>(inout H hdr) { apply { } }"),
    "several varbit fields in a header": program(types="header long_t { varbit<8> a; varbit<8> b; }"),
    "masks in `select` that are known at run time only": program(
        transition="transition select(hdr.byte.value) { 1 &&& meta.low: accept; default: accept; }"
    ),
    "tables in checksum controls and the deparser": program(
        main="""control Sum(inout headers_t hdr, inout metadata_t meta) {
            table t { actions = { NoAction; } } apply { t.apply(); } }
            V1Switch(
                TestParser(), TestChecksum(), TestIngress(), TestEgress(), Sum(), TestDeparser()) main;"""
    ),
    "values wider than 2048 bits (varbits: 65,536)": program(metadata="bit<4096> wide;"),
    "other architectures": program(main="package Other(TestChecksum i); Other(TestChecksum()) main;"),
    "assignment to a slice at a run-time position (open in the specification: p4-spec 1390)": program(
        apply="meta.high[meta.low+:3] = 1;"
    ),
    "slices of signed values at a run-time position": program(
        apply="int<8> a = 5; meta.low = (bit<8>) a[meta.low+:3];"
    ),
}


def documented() -> dict[str, str]:
    """What stays out, and the message, from the document's table."""
    return {row["what"]: row["message"] for row in ROW.finditer(DOCUMENT.read_text())}


def test_the_template_is_accepted(tmp_path: Path) -> None:
    source = tmp_path / "program.p4"
    source.write_text(program())
    compile_p4(source)


def test_the_document_lists_what_is_tested() -> None:
    assert documented().keys() == REFUSED.keys()


@pytest.mark.parametrize("what", REFUSED)
def test_refused_as_documented(what: str, tmp_path: Path) -> None:
    source = tmp_path / "program.p4"
    source.write_text(REFUSED[what])
    with pytest.raises(CompileError) as caught:
        compile_p4(source)
    assert caught.value.message == documented()[what]
    assert caught.value.span is not None
    assert caught.value.span.file == str(source)


def test_a_package_inside_another_architecture_s_is_named(tmp_path: Path) -> None:
    source = tmp_path / "program.p4"
    main = "package Pipe(TestChecksum c); package Other(Pipe p); Pipe(TestChecksum()) p0; Other(p0) main;"
    source.write_text(program(main=main))
    with pytest.raises(CompileError) as caught:
        compile_p4(source)
    assert caught.value.message == "p0 is a Pipe and no V1Switch: only v1model's architecture is supported"
