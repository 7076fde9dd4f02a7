"""ValueSetEntry: what a parser's select looks up, written and read by P4Runtime."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.v1model.kept_programs import kept_program
from tests.v1model.p4runtime import engines
from v1model.dataplane import DataPlaneError
from v1model.p4info import p4info
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.p4runtime.pipeline import Pipeline
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.switch import Switch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> kind; bit<8> seen; }
struct headers_t { h_t h; }
struct meta_t { }
struct known_t { @match(ternary) bit<16> kind; @match(exact) bit<8> seen; }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) trunks;
    value_set<known_t>(2) pairs;
    state start {
        p.extract(h.h);
        transition select(h.h.kind) { trunks: trunk; default: other; }
    }
    state other { transition select(h.h.kind, h.h.seen) { pairs: trunk; default: accept; } }
    state trunk { h.h.seen = 255; transition accept; }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { sm.egress_spec = 2; } }
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
MODIFY, INSERT = p4runtime_pb2.Update.MODIFY, p4runtime_pb2.Update.INSERT


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    artifacts = engines.compile_embedded(kept_program(PROGRAM))
    switch = EmbeddedEngine({}, engines.CPU_PORT).load(artifacts.device_config)
    yield Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=p4info(switch.program)), switch)
    switch.close()


def ids(pipeline: Pipeline) -> dict[str, int]:
    return {info.preamble.name: info.preamble.id for info in pipeline.config.p4info.value_sets}


def entity(set_id: int, *members: tuple[bytes, ...]) -> p4runtime_pb2.Entity:
    made = p4runtime_pb2.Entity()
    made.value_set_entry.value_set_id = set_id
    for fields in members:
        member = made.value_set_entry.members.add()
        for number, value in enumerate(fields, start=1):
            if len(fields) == 2 and number == 1:
                match = member.match.add(field_id=number)
                match.ternary.value = match.ternary.mask = value
            else:
                member.match.add(field_id=number).exact.value = value
    return made


def write(pipeline: Pipeline, kind: p4runtime_pb2.Update.Type, *entities: p4runtime_pb2.Entity) -> list[str]:
    updates = [p4runtime_pb2.Update(type=kind, entity=one) for one in entities]
    return [error.code if error else "OK" for error in pipeline.write(updates)]


def seen(pipeline: Pipeline, kind: int, mark: int = 0) -> int:
    assert isinstance(pipeline.data_plane, Switch)
    (output,) = pipeline.data_plane.inject(1, kind.to_bytes(2, "big") + bytes([mark]))
    return output.data[2]


def test_members_decide_what_the_parser_does(pipeline: Pipeline) -> None:
    trunks, pairs = (ids(pipeline)[name] for name in ("P.trunks", "P.pairs"))
    assert seen(pipeline, 0x8100) == 0
    one, other = entity(trunks, (b"\x81\x00",), (b"\x88\xa8",)), entity(pairs, (b"\x01", b"\x07"))
    assert write(pipeline, MODIFY, one, other) == ["OK", "OK"]
    assert [seen(pipeline, kind) for kind in (0x8100, 0x88A8, 0x0800)] == [255, 255, 0]
    assert (seen(pipeline, 0xFF01, 7), seen(pipeline, 0xFF01, 6)) == (255, 6)
    assert list(pipeline.read_entities([entity(0)])) == [one, other]
    assert write(pipeline, MODIFY, entity(trunks)) == ["OK"]
    assert seen(pipeline, 0x8100) == 0
    assert list(pipeline.read_entities([entity(trunks)])) == [entity(trunks)]


def test_what_is_wrong_is_refused_and_changes_nothing(pipeline: Pipeline) -> None:
    trunks = ids(pipeline)["P.trunks"]
    good = entity(trunks, (b"\x01",))
    assert write(pipeline, MODIFY, good) == ["OK"]
    five = entity(trunks, *((bytes([number]),) for number in range(1, 6)))
    assert write(pipeline, MODIFY, five, entity(trunks, (b"\x01\x00\x00",)), entity(77)) == [
        "RESOURCE_EXHAUSTED",
        "OUT_OF_RANGE",
        "INVALID_ARGUMENT",
    ]
    assert write(pipeline, INSERT, good) == ["INVALID_ARGUMENT"]
    assert list(pipeline.read_entities([entity(trunks)])) == [good]
    with pytest.raises(DataPlaneError, match="value set"):
        list(pipeline.read_entities([entity(77)]))
