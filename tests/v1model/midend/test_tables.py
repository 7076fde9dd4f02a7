"""Tables as the control plane sees them: names, keys, entries, priorities, attached externs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.interpreter import Machine
from tests.v1model.midend.programs import program
from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.ir import ActionCall, KeyMatch

if TYPE_CHECKING:
    from pathlib import Path


def table(folder: Path, properties: str, *, locals_: str = "", body: str = "t.apply();") -> ir.Table:
    """The one table of an ingress that has actions `set(bit<8> v)` and `nop()`."""
    actions = "action set(bit<8> v) { meta.y = v; } action nop() {}"
    ir_program = program(folder, body, locals_=f"{actions} {locals_} table t {{ {properties} }}")
    (found,) = ir_program.tables
    return found


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("hdr.h.a : exact;", "hdr.h.a"),
        ("hdr.h.isValid() : exact;", "hdr.h.$valid$"),
        ("hdr.s[1].b : exact;", "hdr.s[1].b"),
        ("meta.w[15:8] : exact;", "meta.w[15:8]"),
        ("std.ingress_port : exact;", "std.ingress_port"),
        ('meta.x + 1 : exact @name("sum");', "sum"),
        ("meta.x & 3 : exact;", "meta.x & 3"),
        ("hdr.h.a & 0X1F : ternary;", "hdr.h.a & 0x1f"),
        ("hdr.h.a & 8w0b101 : exact;", "hdr.h.a & 0b101"),
    ],
)
def test_key_names_are_p4c_s(tmp_path: Path, key: str, name: str) -> None:
    assert table(tmp_path, f"key = {{ {key} }} actions = {{ nop; }}").keys[0].name == name


def test_complex_key_without_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="@name"):
        table(tmp_path, "key = { meta.x + 1 : exact; } actions = { nop; }")


def test_no_action_is_the_default_without_being_listed(tmp_path: Path) -> None:
    found = table(tmp_path, "key = { meta.x : exact; } actions = { set; }")
    assert found.default_action == ActionCall("NoAction")
    assert [(a.action, a.default_only) for a in found.actions] == [("ing.set", False), ("NoAction", True)]


def test_default_action_with_arguments(tmp_path: Path) -> None:
    found = table(
        tmp_path, "actions = { set; @tableonly nop; } const default_action = set(0x1ff & 0xff); size = 64;"
    )
    assert (found.default_action, found.default_is_const, found.size) == (
        ActionCall("ing.set", (255,)),
        True,
        64,
    )
    assert found.actions[1].table_only


def test_entries_of_every_match_kind(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        """
        key = { meta.x : exact; meta.w : lpm; meta.y : ternary; hdr.h.a : range; hdr.h.b : optional; }
        actions = { set; }
        default_action = set(0);
        const entries = {
            (1, 0x0a000000 &&& 0xff000000, 0x1f &&& 0xf0, 3 .. 5, 7) : set(1);
            (2, 0x0a010203, 4, 9, _) : set(2);
            (3, _, _, 0 .. 255, _) : set(3);
        }
        """,
    )
    assert [entry.matches for entry in found.entries] == [
        (
            KeyMatch(1),
            KeyMatch(0x0A000000, prefix_length=8),
            KeyMatch(0x10, mask=0xF0),
            KeyMatch(3, high=5),
            KeyMatch(7),
        ),
        (
            KeyMatch(2),
            KeyMatch(0x0A010203, prefix_length=32),
            KeyMatch(4, mask=255),
            KeyMatch(9, high=9),
            None,
        ),
        (KeyMatch(3), None, None, None, None),
    ]
    assert [entry.priority for entry in found.entries] == [3, 2, 1]
    assert all(entry.is_const for entry in found.entries)


@pytest.mark.parametrize(
    ("properties", "given", "priorities"),
    [
        ("", ("", "", ""), [3, 2, 1]),
        ("priority_delta = 10;", ("", "", ""), [21, 11, 1]),
        ("", ("priority=100:", "", "priority=40:"), [100, 99, 40]),
        ("priority_delta = 10;", ("priority=100:", "", ""), [100, 90, 80]),
        ("largest_priority_wins = false;", ("", "", ""), [3, 2, 1]),
        ("largest_priority_wins = false;", ("priority=1:", "priority=7:", ""), [8, 2, 1]),
    ],
)
def test_bigger_priorities_win(
    tmp_path: Path, properties: str, given: tuple[str, str, str], priorities: list[int]
) -> None:
    entries = " ".join(f"{p} {i} &&& 0xff : set({i});" for i, p in enumerate(given, start=1))
    found = table(
        tmp_path,
        f"key = {{ meta.x : ternary; }} actions = {{ set; NoAction; }} {properties} "
        f"entries = {{ {entries} }}",
    )
    assert [entry.priority for entry in found.entries] == priorities
    assert not found.entries_are_const


def test_priorities_below_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="priority of 0"):
        table(
            tmp_path,
            "key = { meta.x : ternary; } actions = { set; NoAction; } "
            "entries = { priority=1: 1 &&& 1 : set(1); 2 &&& 2 : set(2); }",
        )


@pytest.mark.parametrize(
    "entry", ["0xf0 &&& 0x0f", "0x0a000000 &&& 0x00ff0000", "1 .. 5"], ids=["low mask", "hole", "range"]
)
def test_entries_that_a_key_cannot_match_are_refused(tmp_path: Path, entry: str) -> None:
    with pytest.raises(CompileError) as refused:
        table(
            tmp_path, f"key = {{ meta.w : lpm; }} actions = {{ nop; }} const entries = {{ {entry} : nop; }}"
        )
    assert refused.value.span is not None


def test_direct_counter_meter_and_profile(tmp_path: Path) -> None:
    actions = "action colour() { m.read(meta.x); hits.count(); } "
    found = table(
        tmp_path,
        """
        key = { meta.x : exact; hdr.h.a : selector; }
        actions = { colour; NoAction; }
        counters = hits; meters = m; support_timeout = true;
        @name("ap") implementation = action_selector(HashAlgorithm.crc16, 32, 10);
        """,
        locals_="direct_counter(CounterType.packets) hits; direct_meter<bit<8>>(MeterType.bytes) m;"
        + actions,
    )
    assert (found.direct, found.implementation, found.idle_timeout) == (("ing.hits", "ing.m"), "ap", True)
    assert found.meter_target == ir.Member(found.meter_target.base, "x", ir.Bits(8))  # type: ignore[union-attr]
    assert found.actions[0].body == ()


def test_a_profile_without_a_name_is_named_by_its_table(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        "key = { meta.x : exact; } actions = { NoAction; } implementation = action_profile(16);",
    )
    assert found.implementation == "ing.t_implementation"


def test_externs_know_their_sizes_and_units(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        locals_="""
            register<bit<16>>(N * 2) r;
            @name("tally") counter(4, CounterType.packets_and_bytes) c;
            meter(8, MeterType.bytes) m;
            action_profile(16) p;
        """,
        declarations="const bit<32> N = 21;",
    )
    assert [(e.kind, e.name, e.size, e.unit) for e in ir_program.externs] == [
        ("register", "ing.r", 42, ""),
        ("counter", "ing.tally", 4, "packets_and_bytes"),
        ("meter", "ing.m", 8, "bytes"),
        ("action_profile", "ing.p", 16, ""),
    ]


def test_tables_never_applied_are_left_out(tmp_path: Path) -> None:
    locals_ = "action nop() {} table t { actions = { nop; } }"
    assert program(tmp_path, locals_=locals_).tables == ()


def test_unknown_match_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises((CompileError, UnsupportedError)):
        table(tmp_path, "key = { meta.x : fuzzy; } actions = { nop; }")


def test_absolute_and_relative_names(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "t.apply();",
        locals_='@name(".shared") action a() {} @name("b.c") action b() {} '
        '@name("main_table") table t { actions = { a; b; } const default_action = a; }',
    )
    assert [a.name for a in ir_program.actions] == ["shared", "ing.b.c"]
    assert ir_program.tables[0].name == "ing.main_table"


def test_action_parameters_of_bool_and_enum(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "t.apply();",
        declarations="enum bit<4> Level { low = 1, high = 9 }",
        locals_="action set(bool f, Level l) { meta.flag = f; if (l == Level.high) { meta.x = 1; } } "
        "table t { actions = { set; } const default_action = set(true, Level.high); }",
    )
    assert [p.type for p in ir_program.actions[0].params] == [ir.Bits(1), ir.Bits(4)]
    found = Machine(ir_program).control().metadata
    assert (found["flag"], found["x"]) == (1, 1)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ("key = { meta.x : lpm; meta.y : lpm; } actions = { nop; }", "lpm"),
        ("key = { meta.x : exact; } actions = { nop; } counters = plain;", "direct_counter"),
        ("key = { meta.x : exact; } actions = { nop; } implementation = plain;", "action_profile"),
    ],
)
def test_properties_that_bmv2_refuses_are_refused(tmp_path: Path, properties: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason) as refused:
        table(tmp_path, properties, locals_="counter(4, CounterType.packets) plain;")
    assert refused.value.span is not None


def test_a_direct_counter_belongs_to_one_table(tmp_path: Path) -> None:
    other = "table u { key = { meta.y : exact; } actions = { nop; } counters = hits; }"
    with pytest.raises(CompileError, match="belongs to table"):
        table(
            tmp_path,
            "key = { meta.x : exact; } actions = { nop; } counters = hits;",
            locals_=f"direct_counter(CounterType.packets) hits; {other}",
            body="t.apply(); u.apply();",
        )


@pytest.mark.parametrize(
    ("kind", "const"), [("exact", ""), ("ternary", "const ")], ids=["no priorities", "const entries"]
)
def test_priorities_where_there_are_none_are_refused(tmp_path: Path, kind: str, const: str) -> None:
    properties = f"key = {{ meta.x : {kind}; }} actions = {{ nop; }} default_action = nop; "
    with pytest.raises(CompileError, match="have no priorities"):
        table(tmp_path, f"{properties} {const}entries = {{ priority=3: 1 : nop; }}")


def test_two_actions_of_one_name_in_one_table_are_refused(tmp_path: Path) -> None:
    """To the control plane they would be one: it could not say which."""
    with pytest.raises(CompileError, match="lists an action twice"):
        program(
            tmp_path,
            "t.apply();",
            locals_='@name(".same") action a() {} @name(".same") action b() { meta.x = 1; } '
            "table t { actions = { a; b; } const default_action = a; }",
        )


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    sub = (
        'control sub(inout bit<8> v) { @name(".t") table t { actions = { NoAction; } } apply { t.apply(); } }'
    )
    with pytest.raises(CompileError, match="two tables are called t"):
        program(
            tmp_path,
            "one.apply(meta.x); two.apply(meta.x);",
            declarations=sub,
            locals_="sub() one; sub() two;",
        )


ENTRIES = "key = { meta.x : KIND; } actions = { nop; } default_action = nop; entries = { LIST }"


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ("largest_priority_wins = 5; ", "true or false"),
        ("priority_delta = -2; ", "at least 1"),
        ("priority_delta = 0; ", "at least 1"),
    ],
)
def test_properties_of_priorities_are_checked(tmp_path: Path, properties: str, reason: str) -> None:
    entries = ENTRIES.replace("KIND", "ternary").replace("LIST", "1 : nop; 2 : nop;")
    with pytest.raises(CompileError, match=reason) as refused:
        table(tmp_path, properties + entries)
    assert refused.value.span is not None


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("exact", "1 : nop; 2 : nop; 1 : nop;"),
        ("lpm", "0x10 &&& 0xF0 : nop; 0x1F &&& 0xF0 : nop;"),
        ("ternary", "priority=4: 1 : nop; priority=4: 1 : nop;"),
    ],
)
def test_an_entry_that_stands_twice_is_refused(tmp_path: Path, kind: str, entries: str) -> None:
    with pytest.raises(CompileError, match="already"):
        table(tmp_path, ENTRIES.replace("KIND", kind).replace("LIST", entries))


def test_the_same_keys_with_another_priority_are_another_entry(tmp_path: Path) -> None:
    text = ENTRIES.replace("KIND", "ternary").replace("LIST", "priority=4: 1 : nop; priority=3: 1 : nop;")
    assert len(table(tmp_path, text).entries) == 2


@pytest.mark.parametrize(
    ("kind", "entry"),
    [("exact", "300"), ("exact", "-129 - 200"), ("ternary", "1 &&& 0x1FF"), ("range", "0 .. 256")],
)
def test_a_key_that_does_not_fit_is_refused(tmp_path: Path, kind: str, entry: str) -> None:
    with pytest.raises(CompileError, match="does not fit bit<8>"):
        table(tmp_path, ENTRIES.replace("KIND", kind).replace("LIST", f"{entry} : nop;"))


def test_a_negative_mask_is_a_bit_pattern(tmp_path: Path) -> None:
    (entry,) = table(tmp_path, ENTRIES.replace("KIND", "ternary").replace("LIST", "1 &&& -1 : nop;")).entries
    assert entry.matches == (KeyMatch(1, mask=255),)


def test_unknown_properties_are_refused_where_they_look_like_others(tmp_path: Path) -> None:
    """Others are warned of (tests/v1model/frontend/mistakes)."""
    with pytest.raises(CompileError, match="counter") as refused:
        table(tmp_path, "actions = { nop; } default_action = nop; counter = 1;")
    assert refused.value.hint == "did you mean 'counters'?"
    table(tmp_path, "actions = { nop; } default_action = nop; colour = 1;")


METER = "direct_meter<bit<8>>(MeterType.packets) rate; action read() { rate.read(meta.y); } "


@pytest.mark.parametrize(
    ("locals_", "reason"),
    [
        ("table t { key = { meta.x : exact; } actions = { nop; } meters = rate; }", "reads its direct meter"),
        ("table t { key = { meta.x : exact; } actions = { read; } }", "belongs to no table"),
        (
            "table t { key = { meta.x : exact; } actions = { read; } meters = rate; }"
            "table u { key = { meta.x : exact; } actions = { read; } meters = rate; }",
            "belongs to table 't' already",
        ),
    ],
    ids=["never read", "not attached", "two tables"],
)
def test_a_direct_meter_without_its_table_is_refused(tmp_path: Path, locals_: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        program(tmp_path, "t.apply();", locals_=f"{METER} action nop() {{}} {locals_}")


def test_a_direct_meter_may_be_read_by_some_of_a_table_s_actions(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "t.apply();",
        locals_=METER + "table t { key = { meta.x : exact; } actions = { read; NoAction; } meters = rate; }",
    )
    assert ir_program.tables[0].direct == ("ing.rate",)


IN_HEADER = '@controller_header("packet_in") header in_t { bit<65> wide; }'


def test_a_packet_in_header_has_whole_bytes(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="65 bits") as refused:
        program(tmp_path, "in_t own; own.setValid(); hdr.h.a = (bit<8>) own.wide;", declarations=IN_HEADER)
    assert refused.value.hint == "add a field of bit<7>"


def test_a_packet_in_header_without_use_may_be_of_any_bits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The programs of sonic-pins have such."""
    program(tmp_path, declarations=IN_HEADER)
    assert "65 bits, which are no whole bytes; the program does not use it" in caplog.text


def test_a_packet_in_header_may_have_booleans_but_no_varbits(tmp_path: Path) -> None:
    use = "in_t own; own.setValid(); hdr.h.a = own.rest;"
    header = '@controller_header("packet_in") header in_t { bit<8> rest; %s }'
    program(tmp_path, use, declarations=header % "bool first; bit<7> pad;")
    with pytest.raises(CompileError, match="has a varbit"):
        program(tmp_path, use, declarations=header % "varbit<8> more;")
