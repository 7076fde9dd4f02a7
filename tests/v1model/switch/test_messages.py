"""log_msg: strings, numbers, headers and structs as a person reads them in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.v1model.switch.conftest import PARSER, PROGRAM, frame
from v1model.compile import compile_p4
from v1model.errors import CompileError
from v1model.switch import Switch

Make = Callable[..., Switch]
TYPES = """
enum bit<8> kind_t { NONE = 0, SOME = 5 }
struct pair_t { bit<8> x; int<16> y; }
struct both_t { pair_t pair; h_t h; }
header_union either_t { h_t one; t_t two; }
const string LEFT = "le" ++ "ft";
string same(string text) { return (string) text; }
control Named()(string name) { apply { log_msg("this is " ++ name); } }
void say(string text, in bit<8> value) { log_msg(text ++ "={}", { value }); }
"""


def logged(make: Make, caplog: pytest.LogCaptureFixture, ingress: str, **parts: str) -> list[str]:
    """What a program says about a frame of 5, 6, 0 and 0."""
    switch = make(types=TYPES, ingress=ingress, **parts)
    with caplog.at_level("INFO", "v1model.program"):
        switch.inject(1, frame(5, 6))
    return caplog.messages


def test_strings_are_joined_named_passed_and_returned(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    found = logged(
        make,
        caplog,
        """
        log_msg("a" ++ "b");
        log_msg(LEFT ++ " {}", { hdr.h.a });
        say("value", hdr.h.b);
        same("unused");
        log_msg("{} of {}", { LEFT, same("one" ++ " string") });
        log_msg("braces \\\\{\\\\} {}", { hdr.h.a });
        named.apply();""",
        ingress_declarations='Named("inner") named;',
    )
    assert found == [
        "ab",
        "left 5",
        "value=6",
        "left of one string",
        "braces {} 5",
        "this is inner",
    ]


def test_composite_values_are_shown_in_their_own_places(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    found = logged(
        make,
        caplog,
        """
        pair_t pair = { 1, -2 };
        both_t both = { pair, hdr.h };
        either_t either; either.two.setValid(); either.two.kind = 9;
        t_t[2] stack; stack[1].setValid(); stack[1].kind = 7;
        kind_t kind = kind_t.SOME;
        log_msg("{} {} {} {}", { hdr.h, hdr.t, pair, hdr.h.a });
        log_msg("{}, {}", { both, 8w3 });
        log_msg("{} {}", { either, stack });
        log_msg("{} {} {}", { kind, hdr.h.isValid(), { 1w1, -4s3 } });
        log_msg("x={} y={}", pair);
        log_msg("{} {}", { hdr.h.a });
        hdr.h.setInvalid();
        log_msg("{}", { both });""",
    )
    assert found == [
        "(a:5,b:6,c:0,d:0) (invalid) (x:1,y:-2) 5",
        "(pair:(x:1,y:-2),h:(a:5,b:6,c:0,d:0)), 3",
        "(one:(invalid),two:(kind:9)) (0:(invalid),1:(kind:7))",
        "5 1 (f0:1,f1:-3)",
        "x=1 y=-2",
        "5 {}",
        "(pair:(x:1,y:-2),h:(a:5,b:6,c:0,d:0))",
    ]


def test_varbits_are_shown_as_far_as_they_reach(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    switch = make(
        types="header short_t { bit<8> a; varbit<24> b; } header long_t { varbit<320> b; }",
        headers="short_t short; long_t long;",
        parser="state start { packet.extract(hdr.h); packet.extract(hdr.short, (bit<32>) hdr.h.b);"
        "packet.extract(hdr.long, (bit<32>) hdr.h.b); transition accept; }",
        ingress='log_msg("{} {} {}", { hdr.short, hdr.long.b, hdr.h.a });',
    )
    with caplog.at_level("INFO", "v1model.program"):
        switch.inject(1, frame(5, 0, payload=b"\x07"))
        switch.inject(1, frame(5, 16, payload=b"\x07\x01\x02\x03\x04"))
    assert caplog.messages == ["(a:7,b:(empty)) (empty) 5", "(a:7,b:0x0102) 0x0304 5"]


@pytest.mark.parametrize(
    ("declarations", "apply"),
    [
        ("", 'log_msg("{}", { hdr.h.a == 1 ? "one" : "more" });'),
        (
            'string pick(in bit<8> x) { if (x == 1) { return "one"; } return "more"; }',
            'log_msg("{}", { pick(hdr.h.a) });',
        ),
    ],
    ids=["conditional", "function"],
)
def test_a_string_of_run_time_is_refused(tmp_path: Path, declarations: str, apply: str) -> None:
    program = tmp_path / "program.p4"
    parts = {"parser": PARSER, "types": declarations, "ingress": apply}
    program.write_text(PROGRAM.substitute({**dict.fromkeys(PROGRAM.get_identifiers(), ""), **parts}))
    with pytest.raises(CompileError, match="not known at compile time") as refused:
        compile_p4(program)
    assert refused.value.span is not None


def test_a_string_from_the_control_plane_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.p4"
    parts = {
        "parser": PARSER,
        "ingress_declarations": """
            action say(string text) { log_msg("{}", { text }); }
            table t { key = { hdr.h.a: exact; } actions = { say; } }""",
        "ingress": "t.apply();",
    }
    program.write_text(PROGRAM.substitute({**dict.fromkeys(PROGRAM.get_identifiers(), ""), **parts}))
    with pytest.raises(CompileError, match="cannot be string"):
        compile_p4(program)
