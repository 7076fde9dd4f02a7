"""@entry_restriction and @action_restriction in p4-constraints' language."""

from __future__ import annotations

import pytest

from tests.v1model.kept_programs import kept_program
from v1model.compile import compile_p4
from v1model.dataplane import DataPlaneError
from v1model.ir import KeyMatch
from v1model.p4info import p4info
from v1model.p4runtime.batch import Batch
from v1model.p4runtime.constraints import matched, parse
from v1model.p4runtime.pipeline import Pipeline
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.switch import Switch

VALUES = {
    "exact": 7,
    "hdr.ip.exact": 1,
    "any": matched("ternary", 8, None),
    "all": matched("ternary", 8, KeyMatch(5, mask=255)),
    "some": matched("ternary", 8, KeyMatch(4, mask=6)),
    "prefix": matched("lpm", 8, KeyMatch(16, prefix_length=4)),
    "range": matched("range", 8, KeyMatch(3, high=9)),
    "one": matched("range", 8, KeyMatch(3, high=3)),
    "given": matched("optional", 8, KeyMatch(2)),
    "::priority": 20,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("true", True),
        ("exact == 7; hdr.ip.exact != 0x0;", True),
        ("exact == 7; exact == 8", False),
        ("exact::value == 7 && (exact < 8 || false)", True),
        ("!(exact == 7)", False),
        ("any::mask == 0; all::mask == -1; -1 == all::mask; some::mask == 0b110", True),
        ("all == 5; some != 4; any != 0", True),
        ("some == 4", False),
        ("prefix::prefix_length == 4 && prefix::value == 16", True),
        ("range::low == 3 && range::high == 9 && range != 3 && one == 3", True),
        ("given == 2; given::mask == -1", True),
        ("::priority < 0x7fffffff; ::priority >= 20", True),
        ("any::mask != 0 -> exact == 8", True),
        ("all::mask != 0 -> exact == 8", False),
        ("false -> false -> false", True),
        ("true && false || true", True),
        ("// a comment; exact == 8\n exact == 7 /* and\n another */;", True),
    ],
)
def test_rules(text: str, holds: bool) -> None:
    assert bool(parse(text, VALUES)(VALUES)) == holds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing == 1", "'nothing' is no key"),
        ("exact == ", "no key, parameter or number"),
        ("(exact == 1", "expected \\)"),
        ("exact == 1 exact == 2", "expected ;"),
        ("exact @ 1", "no part of the language"),
        ("(" * 5000 + "true" + ")" * 5000, "too deeply"),
    ],
)
def test_what_is_no_rule(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text, VALUES)


PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    @action_restriction("port != 0; port < 100")
    action to(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    @entry_restriction("
        // b says something of some a alone
        b::mask != 0 -> a == 5;
        ::priority < 50;
    ")
    table t { key = { h.h.a: exact @name("a"); h.h.b: ternary @name("b"); } actions = { to; drop; } }
    @entry_restriction("a is fine")
    table u { key = { h.h.a: exact @name("a"); } actions = { to; drop; } }
    apply { t.apply(); u.apply(); }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""

# The key of the selector stands first: it takes no match.
WITH_SELECTOR = PROGRAM.replace(
    "    apply { t.apply();",
    """
    action_selector(HashAlgorithm.crc16, 16, 8) paths;
    @entry_restriction("a != 3")
    table w {
        key = { h.h.b: selector; h.h.a: exact @name("a"); }
        actions = { to; drop; }
        implementation = paths;
    }
    apply { w.apply(); t.apply();""",
)


def test_a_table_with_a_selector() -> None:
    compiled = compile_p4(kept_program(WITH_SELECTOR), quick=True)
    info = p4info(compiled.program)
    table = next(table for table in info.tables if table.preamble.alias == "w")
    drop = next(action.preamble.id for action in info.actions if action.preamble.alias == "drop")

    def update(a: int) -> p4runtime_pb2.Update:
        found = p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT)
        entry = found.entity.table_entry
        entry.table_id = table.preamble.id
        entry.match.add(field_id=table.match_fields[0].id).exact.value = bytes([a])
        one = entry.action.action_profile_action_set.action_profile_actions.add(weight=1)
        one.action.action_id = drop
        return found

    with Switch(compiled) as switch:
        pipeline = Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=info), switch)
        good, bad = pipeline.write([update(2), update(3)])
        assert good is None
        assert bad is not None
        assert bad.code == "INVALID_ARGUMENT"


def test_writes_are_checked(caplog: pytest.LogCaptureFixture) -> None:
    """Also those that the data plane would do by itself. A restriction that is not understood is told of."""
    compiled = compile_p4(kept_program(PROGRAM), quick=True)
    info = p4info(compiled.program)
    actions = {action.preamble.alias: action.preamble.id for action in info.actions}

    def update(a: int, mask: int, priority: int, port: int, table: int = 0) -> p4runtime_pb2.Update:
        found = p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT)
        entry = found.entity.table_entry
        entry.table_id = info.tables[table].preamble.id
        entry.match.add(field_id=1).exact.value = bytes([a])
        if mask:
            ternary = entry.match.add(field_id=2).ternary
            ternary.value, ternary.mask = bytes([mask]), bytes([mask])
        entry.priority = priority
        entry.action.action.action_id = actions["to"]
        entry.action.action.params.add(param_id=1, value=bytes([port]))
        return found

    with Switch(compiled) as switch:
        pipeline = Pipeline(p4runtime_pb2.ForwardingPipelineConfig(p4info=info), switch)
        assert "@entry_restriction of I.u is not enforced" in caplog.text
        good = [update(5, 1, 9, 1), update(6, 0, 9, 99), update(6, 0, 0, 1, table=1)]
        bad = [update(6, 1, 9, 1), update(7, 0, 50, 1), update(8, 0, 9, 0), update(8, 0, 9, 100)]
        results = pipeline.write([*good, *bad])
        assert results[: len(good)] == [None] * len(good)
        assert [error.code for error in results[len(good) :] if error] == ["INVALID_ARGUMENT"] * len(bad)
        assert "b::mask != 0 -> a == 5; ::priority < 50;" in str(results[len(good)])
        request = p4runtime_pb2.WriteRequest(updates=bad)
        batch = Batch(request)
        pipeline.write_batch(batch, len(bad))
        assert all(isinstance(error, DataPlaneError) for error in batch.results)
        assert len(list(switch.entries("I.t"))) == 2
