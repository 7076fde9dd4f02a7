"""Programs of one snippet each, for tests of the middle end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import load
from v1model.midend import lower

if TYPE_CHECKING:
    from pathlib import Path

    from v1model import ir

TYPES = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
header_union u_t { h_t one; h_t two; }
struct headers_t { h_t h; h_t g; u_t u; h_t[3] s; }
struct pair_t { bit<8> first; bit<8> second; }
struct meta_t {
    @field_list(1, 2) bit<8> x;
    @field_list(2) bit<8> y;
    bit<32> w;
    bool flag;
    pair_t pair;
}
"""

FRAME = """
parser prs(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    %(parser_locals)s
    %(states)s
}
control ver(inout headers_t hdr, inout meta_t meta) { apply {} }
control ing(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    %(locals)s
    apply {
        %(body)s
    }
}
control egr(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { %(egress)s }
}
control cmp(inout headers_t hdr, inout meta_t meta) { apply {} }
control dep(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(prs(), ver(), ing(), egr(), cmp(), dep()) main;
"""


def program(
    folder: Path,
    body: str = "",
    *,
    declarations: str = "",
    locals_: str = "",
    states: str = "state start { transition accept; }",
    parser_locals: str = "",
    egress: str = "",
) -> ir.Program:
    """The IR of a v1model program whose ingress runs `body`."""
    text = TYPES + declarations
    text += FRAME % {
        "parser_locals": parser_locals,
        "states": states,
        "locals": locals_,
        "body": body,
        "egress": egress,
    }
    return lowered(folder, text)


def lowered(folder: Path, text: str) -> ir.Program:
    path = folder / "snippet.p4"
    path.write_text(text)
    return lower(load(path), "snippet")
