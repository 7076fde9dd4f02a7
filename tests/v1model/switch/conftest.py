"""Programs for the library form: a test writes the blocks that it is about, the rest is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Template

import pytest

from tests.v1model.kept_programs import kept_program
from v1model.compile import compile_p4
from v1model.switch import Switch

# Headers: h (8 bytes), t (1 byte); metadata: a few fields with and without field lists.
PROGRAM = Template("""
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header t_t { bit<8> kind; }
header trace_t { bit<32> x; bit<32> y; bit<32> z; }
$types
struct headers_t { trace_t trace; h_t h; t_t t; $headers }
struct metadata_t {
    @field_list(1) bit<16> kept;
    @field_list(1, 2) bit<8> twice;
    bit<16> lost;
    $metadata
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    $parser
}
control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { $verify } }
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    $ingress_declarations
    apply { $ingress }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    $egress_declarations
    apply { $egress }
}
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { $compute } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
""")
PARSER = "state start { packet.extract(hdr.h); transition accept; }"


@pytest.fixture
def make() -> Iterator[Callable[..., Switch]]:
    """make(ingress="...", parser="...", ...): a switch with that program."""
    switches: list[Switch] = []

    def make_switch(**parts: str) -> Switch:
        names = PROGRAM.get_identifiers()
        path = kept_program(PROGRAM.substitute({**dict.fromkeys(names, ""), "parser": PARSER, **parts}))
        switches.append(Switch(compile_p4(path, quick=True)))
        return switches[-1]

    yield make_switch
    for switch in switches:
        switch.close()


def frame(a: int = 0, b: int = 0, c: int = 0, d: int = 0, payload: bytes = b"") -> bytes:
    return bytes((a, b)) + c.to_bytes(2, "big") + d.to_bytes(4, "big") + payload


def trace(data: bytes) -> tuple[int, int, int]:
    """The three numbers that a program left in front."""
    x, y, z = (int.from_bytes(data[i : i + 4], "big") for i in (0, 4, 8))
    return x, y, z
