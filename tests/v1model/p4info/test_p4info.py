"""P4Info against p4c's: a committed golden of one program with everything, and live where p4c is on PATH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from v1model.errors import CompileError
from v1model.frontend import load
from v1model.midend import lower
from v1model.p4info import p4info
from v1model.protos.p4.config.v1 import p4info_pb2

HERE = Path(__file__).parent
EVERYTHING = HERE / "everything.p4"
POOL = HERE.parents[2] / "p4" / "weir.p4"

SKELETON = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {} struct meta_t { bit<8> x; }
parser prs(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control none(inout headers_t hdr, inout meta_t meta) { apply {} }
control ing(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { %s }
control egr(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control dep(packet_out packet, in headers_t hdr) { apply {} }
V1Switch(prs(), none(), ing(), egr(), none(), dep()) main;
"""


def described(path: Path) -> Any:
    return p4info(lower(load(path), path.name))


def snippet(folder: Path, ingress: str) -> Any:
    """The P4Info of a program with this ingress."""
    path = folder / "snippet.p4"
    path.write_text(SKELETON % ingress)
    return described(path)


def test_everything_is_described_as_p4c_does() -> None:
    golden = (HERE / "everything.p4info.txtpb").read_text()
    expected = text_format.Parse(golden, p4info_pb2.P4Info())
    assert text_format.MessageToString(described(EVERYTHING)) == text_format.MessageToString(expected)


@pytest.mark.bmv2
@pytest.mark.parametrize("program", [EVERYTHING, POOL], ids=lambda path: path.name)
def test_same_as_the_p4c_on_path(tmp_path: Path, program: Path) -> None:
    compiler = shutil.which("p4c-bm2-ss")
    if compiler is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    found = tmp_path / "reference.txtpb"
    command = [compiler, str(program), "--p4runtime-files", str(found), "-o", str(tmp_path / "x.json")]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    expected = text_format.Parse(found.read_text(), p4info_pb2.P4Info())
    assert text_format.MessageToString(described(program)) == text_format.MessageToString(expected)


def test_given_ids_take_their_kind_s_prefix(tmp_path: Path) -> None:
    info = snippet(
        tmp_path,
        "@id(5) action a() {} @id(7) table t { actions = { a; } const default_action = a; } "
        "apply { t.apply(); }",
    )
    assert (info.tables[0].preamble.id, info.actions[0].preamble.id) == (0x02000007, 0x01000005)


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [(("@id(0x01000001)", ""), "first byte"), (("@id(9)", "@id(9)"), "another object")],
)
def test_ids_that_cannot_be_are_refused(tmp_path: Path, annotations: tuple[str, str], reason: str) -> None:
    first, second = annotations
    with pytest.raises(CompileError, match=reason):
        snippet(
            tmp_path,
            f"action a() {{}} {first} table t {{ actions = {{ a; }} const default_action = a; }} "
            f"{second} table u {{ actions = {{ a; }} const default_action = a; }} "
            "apply { t.apply(); u.apply(); }",
        )


@pytest.mark.parametrize("ids", ["@id(0)", "@id(2)"], ids=["zero", "twice"])
def test_parameter_ids_must_be_free(tmp_path: Path, ids: str) -> None:
    with pytest.raises(CompileError, match="@id"):
        snippet(
            tmp_path,
            f"action a({ids} bit<8> p, @id(2) bit<8> q) {{}} "
            "table t { actions = { a; } const default_action = a(1, 2); } apply { t.apply(); }",
        )


def test_actions_are_listed_once_however_many_tables_have_them(tmp_path: Path) -> None:
    info = snippet(
        tmp_path,
        "action a() {} table t { actions = { a; NoAction; } } table u { actions = { a; NoAction; } } "
        "apply { t.apply(); u.apply(); }",
    )
    assert [action.preamble.name for action in info.actions] == ["NoAction", "ing.a"]


def test_a_type_over_a_translated_type_has_its_own_width(tmp_path: Path) -> None:
    path = tmp_path / "snippet.p4"
    types = """
@p4runtime_translation("port", string) type bit<9> port_t;
type port_t lane_t;
"""
    ingress = """
action a(port_t port, lane_t lane) {}
table t { key = { (port_t) 9w1 : exact @name("port"); (lane_t) 9w1 : exact @name("lane"); } actions = { a; } }
apply { t.apply(); }
"""
    before, after = (SKELETON % ingress).split("struct", 1)
    path.write_text(f"{before}{types}struct{after}")
    info = described(path)
    assert [(field.name, field.bitwidth) for field in info.tables[0].match_fields] == [
        ("port", 0),
        ("lane", 9),
    ]
    assert [param.bitwidth for param in info.actions[-1].params] == [0, 9]


def test_a_translated_argument_of_the_default_action_is_as_wide_as_the_controller_sees_it(
    tmp_path: Path,
) -> None:
    """p4c does the same. A translated string has no width: its value is the program's."""
    path = tmp_path / "snippet.p4"
    types = """
@p4runtime_translation("id", 32) type bit<16> id_t;
@p4runtime_translation("port", string) type bit<9> port_t;
"""
    ingress = """
action a(id_t id, port_t port, bit<12> plain) {}
table t { actions = { a; } default_action = a((id_t) 16w2, (port_t) 9w3, 4); }
apply { t.apply(); }
"""
    before, after = (SKELETON % ingress).split("struct", 1)
    path.write_text(f"{before}{types}struct{after}")
    default = described(path).tables[0].initial_default_action
    assert [given.value for given in default.arguments] == [b"\0\0\0\2", b"\0\3", b"\0\4"]


# As p4c-bm2-ss does: it keeps extern instances without a use, but for those of a typedef's name. A read into
# a variable that nothing reads is no use.
@pytest.mark.parametrize(
    ("uses", "kept"),
    [
        ("", ["ing.plain"]),
        ("bit<8> v; by_name.read(v, 0);", ["ing.plain"]),
        ("bit<8> v; by_name.read(v, 0); meta.x = v;", ["ing.by_name", "ing.plain"]),
        ("by_name.read(meta.x, 0);", ["ing.by_name", "ing.plain"]),
        ("by_name.write(0, 5);", ["ing.by_name", "ing.plain"]),
    ],
)
def test_a_register_of_a_typedef_without_use_is_left_out(tmp_path: Path, uses: str, kept: list[str]) -> None:
    declared = "named_t(4) by_name; register<bit<8>>(4) plain;"
    path = tmp_path / "snippet.p4"
    ingress = f"{declared} apply {{ {uses} }}"
    path.write_text(
        SKELETON.replace("struct headers_t", "typedef register<bit<8>> named_t;\nstruct headers_t") % ingress
    )
    assert sorted(register.preamble.name for register in described(path).registers) == kept
