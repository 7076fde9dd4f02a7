"""A v1model program with gaps to fill in."""

from __future__ import annotations

TEMPLATE = """
#include <core.p4>
#include <v1model.p4>
header byte_t {{ bit<8> value; }}
header_union either_t {{ byte_t one; byte_t other; }}
struct pair_t {{ bit<8> x; bit<8> y; }}
{types}
struct headers_t {{ byte_t byte; either_t either; {headers} }}
struct metadata_t {{ bit<8> low; bit<8> high; {metadata} }}
parser Inner(packet_in packet, out byte_t byte) {{
    state start {{ packet.extract(byte); transition accept; }}
}}
parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {parser_locals}
    state start {{ packet.extract(hdr.byte); {state} {transition} }}
}}
control TestChecksum(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {apply} }}
}}
control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control TestDeparser(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
{main}
"""
MAIN = """
V1Switch(TestParser(), TestChecksum(), TestIngress(), TestEgress(), TestChecksum(), TestDeparser()) main;
"""
GAPS = ("types", "headers", "metadata", "parser_locals", "state", "locals", "apply")


def program(**gaps: str) -> str:
    """The program's text; unfilled it is accepted."""
    defaults = dict.fromkeys(GAPS, "") | {"transition": "transition accept;", "main": MAIN}
    return TEMPLATE.format(**(defaults | gaps))
