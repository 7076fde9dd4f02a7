"""What cannot mean what it says is refused, with its place, instead of being accepted in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.programs import TYPES, program
from v1model.errors import CompileError
from v1model.frontend import load
from v1model.midend import lower

if TYPE_CHECKING:
    from pathlib import Path

NOP = "action nop() {} action to(bit<9> port) { std.egress_spec = port; } "
SELECTOR = "action_selector(HashAlgorithm.crc16, 16, 8) paths; "


def table(rest: str, keys: str = "meta.x : exact;") -> str:
    return f"table t {{ key = {{ {keys} }} actions = {{ nop; to; NoAction; }} {rest} }}"


@pytest.mark.parametrize(
    ("locals_", "reason"),
    [
        (table("support_timeout = 5;"), "support_timeout must be true or false"),
        (table("largest_priority_wins = 5;"), "largest_priority_wins must be true or false"),
        (table("size = -5;"), "size must be at least 0"),
        (table('size = "big";'), "size must be a number, not string"),
        (table("entries = { 1: nop(); } priority_delta = true;", "meta.x : ternary;"), "not bool"),
        (table("priority_delta = -3;", "meta.x : ternary;"), "priority_delta must be at least 1"),
        (table("implementation = nop;"), "must be known at compile time"),
        (table("counters = 5;"), "counters must be of type direct_counter"),
        (
            table("entries = { 1: nop(); 2: nop(); } priority_delta = 0x7fffffff;", "meta.x : ternary;"),
            "from 1 to",
        ),
        (table("entries = { priority=0x80000000: 1: nop(); }", "meta.x : ternary;"), "from 1 to"),
        (table("entries = { 9..3: nop(); }", "meta.x : range;"), "from 9 to 3 holds nothing"),
        (table("const entries = { 1: to(1000); }"), "1000 does not fit bit<9>"),
        (table("default_action = to(1000);"), "1000 does not fit bit<9>"),
        ('@name("") ' + table(""), "@name must hold a name"),
        ("@name(5) " + table(""), "@name must hold a name"),
    ],
)
def test_tables(tmp_path: Path, locals_: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason) as refused:
        program(tmp_path, "t.apply();", locals_=NOP + locals_)
    assert refused.value.span is not None


def test_tables_that_share_a_selector_select_alike(tmp_path: Path) -> None:
    first = "table t { key = { meta.x : selector; } actions = { nop; } implementation = paths; } "
    second = first.replace("table t", "table u")
    program(tmp_path, "t.apply(); u.apply();", locals_=NOP + SELECTOR + first + second)
    other = second.replace("meta.x", "meta.y")
    with pytest.raises(CompileError, match="selects by other keys in table"):
        program(tmp_path, "t.apply(); u.apply();", locals_=NOP + SELECTOR + first + other)


@pytest.mark.parametrize("implementation", ["", "implementation = paths;"])
def test_a_selector_key_without_a_selector_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, implementation: str
) -> None:
    """p4c compiles such programs."""
    locals_ = "action_profile(16) paths; " + table(implementation, "meta.x : exact; meta.y : selector;")
    program(tmp_path, "t.apply();", locals_=NOP + locals_)
    assert "table ing.t has a selector key and no action_selector" in caplog.text


@pytest.mark.parametrize("key", ["300", "-300", "1 &&& 0x1ff", "1 .. 300"])
def test_a_key_of_select_that_does_not_fit(tmp_path: Path, key: str) -> None:
    states = f"state start {{ transition select(meta.x) {{ {key}: accept; default: reject; }} }}"
    with pytest.raises(CompileError, match="does not fit bit<8>"):
        program(tmp_path, states=states)


def test_a_key_in_a_list_of_select_that_does_not_fit(tmp_path: Path) -> None:
    states = "state start { transition select(meta.x, meta.y) { (3, 256): accept; (_, 255): accept; } }"
    with pytest.raises(CompileError, match="256 does not fit"):
        program(tmp_path, states=states)
    program(tmp_path, states=states.replace("256", "-1"))  # a bit pattern


def test_a_label_of_switch_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="300 does not fit bit<8>"):
        program(tmp_path, "switch (meta.x) { 300: { meta.y = 1; } default: { } }")


def test_a_direct_counter_counts_for_its_table(tmp_path: Path) -> None:
    counter = "direct_counter(CounterType.packets) seen; action count() { seen.count(); } "
    attached = "table t { key = { meta.x : exact; } actions = { count; } counters = seen; }"
    program(tmp_path, "t.apply();", locals_=counter + attached)
    with pytest.raises(CompileError, match=r"direct counter ing.seen belongs to no table"):
        program(tmp_path, "t.apply();", locals_=counter + attached.replace("counters = seen;", ""))


def test_a_direct_meter_has_one_place_for_its_colour(tmp_path: Path) -> None:
    meter = (
        "direct_meter<bit<8>>(MeterType.packets) rate; action one() { rate.read(meta.x); } "
        "action two() { rate.read(meta.PLACE); } "
        "table t { key = { meta.w : exact; } actions = { one; two; } meters = rate; }"
    )
    program(tmp_path, "t.apply();", locals_=meter.replace("PLACE", "x"))
    with pytest.raises(CompileError, match="colour in two places"):
        program(tmp_path, "t.apply();", locals_=meter.replace("PLACE", "y"))


@pytest.mark.parametrize(
    ("declarations", "reason"),
    [
        ("enum bit<8> many_t { ONE = 1, MANY = 300 }", "300 does not fit bit<8>"),
        ("@controller_header header in_t { bit<8> port; }", "must name what it is for"),
        ('@controller_header("packet_in") struct in_t { bit<8> port; }', "before a header"),
        (
            '@controller_header("packet_in") header in_t { bit<8> port; } '
            '@controller_header("packet_in") header again_t { bit<8> port; }',
            "once",
        ),
    ],
)
def test_declarations(tmp_path: Path, declarations: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        program(tmp_path, declarations=declarations)


def test_a_translation_to_no_bits(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="0 bits"):
        program(
            tmp_path,
            "t.apply();",
            declarations='@p4runtime_translation("uri", bit<0>) type bit<8> port_t;',
            locals_=NOP + table("", '(port_t) meta.x : exact @name("port");'),
        )


def test_a_program_without_main_is_refused_at_its_own_end(tmp_path: Path) -> None:
    path = tmp_path / "prog.p4"
    path.write_text(TYPES)
    with pytest.raises(CompileError, match="no `main`") as caught:
        lower(load(path), path.name)
    assert caught.value.span is not None
    assert caught.value.span.file == str(path)
