"""Parsers, stacks, unions, varbits, and what a parser does with packets that don't fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.v1model.kept_programs import kept_program
from tests.v1model.refused_program import program
from tests.v1model.switch.conftest import frame
from v1model.compile import compile_p4
from v1model.dataplane import Output
from v1model.switch import Switch

Make = Callable[..., Switch]

# core.p4's errors in order of declaration
NO_ERROR, TOO_SHORT, _NO_MATCH, STACK_BOUNDS, HEADER_TOO_SHORT, TIMEOUT, INVALID_ARGUMENT = range(7)
REPORT_ERROR = """
    hdr.code.setValid();
    if (std.parser_error == error.NoError) { hdr.code.kind = 0; }
    else if (std.parser_error == error.PacketTooShort) { hdr.code.kind = 1; }
    else if (std.parser_error == error.NoMatch) { hdr.code.kind = 2; }
    else if (std.parser_error == error.StackOutOfBounds) { hdr.code.kind = 3; }
    else if (std.parser_error == error.HeaderTooShort) { hdr.code.kind = 4; }
    else if (std.parser_error == error.ParserTimeout) { hdr.code.kind = 5; }
    else if (std.parser_error == error.ParserInvalidArgument) { hdr.code.kind = 6; }
"""
STACK = {
    "headers": "t_t[3] s; t_t code;",
    "parser": """
        state start { packet.extract(hdr.s.next); transition select(hdr.s.last.kind) {
            0: accept; 9: reject; 1..5: start; } }""",
}


def sent(switch: Switch, data: bytes) -> bytes:
    (output,) = switch.inject(1, data)
    return output.data


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0rest", b"\0\0rest"),
        (b"\1\2\0rest", b"\1\2\0\0rest"),
        (b"\1\2\3\0rest", bytes([1, 2, 3, STACK_BOUNDS]) + b"\0rest"),
        (b"\1", bytes([1, TOO_SHORT])),
        (b"", bytes([TOO_SHORT])),
        (b"\7rest", bytes([7, NO_ERROR]) + b"rest"),  # no match is no error: BMv2 has none
        (b"\11rest", bytes([9, NO_ERROR]) + b"rest"),
    ],
)
def test_a_stack_is_filled_until_it_ends(make: Make, data: bytes, expected: bytes) -> None:
    """The packet is kept from where the parser stopped, and ingress learns why."""
    assert sent(make(ingress=REPORT_ERROR, **STACK), data) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("hdr.s.push_front(1);", b"\1\2"),
        ("hdr.s.push_front(2); hdr.s[0].setValid();", b"\0\1"),
        ("hdr.s.push_front(9);", b""),
        ("hdr.s.pop_front(1);", b"\2\0"),
        ("hdr.s.pop_front(2);", b"\0"),
        ("hdr.s.pop_front(7);", b""),
        ("hdr.s[1] = hdr.s[0];", b"\1\1\0"),
        ("bit<8> i = hdr.s[1].kind; hdr.s[i].kind = 7;", b"\1\2\7"),
        ("bit<8> i = hdr.s[0].kind + 200; hdr.s[i].kind = 7; hdr.s[i].setValid();", b"\1\2\0"),
        ("bit<8> i = hdr.s[0].kind + 2; if (hdr.s[i].isValid()) { hdr.s[0].kind = 9; }", b"\1\2\0"),
        ("hdr.s[2].kind[7:4] = 0xa; hdr.s[2].kind[3:0] = hdr.s[1].kind[3:0];", b"\1\2\xa2"),
    ],
)
def test_stack_operations(make: Make, statement: str, expected: bytes) -> None:
    assert sent(make(ingress=statement, **STACK), b"\1\2\0") == expected


def test_push_front_loses_what_falls_off(make: Make) -> None:
    assert sent(make(ingress="hdr.s.push_front(1); hdr.s[0] = { 5 };", **STACK), b"\1\2\0x") == b"\5\1\2x"


UNION = {
    "types": "header v_t { bit<16> v; } header_union u_t { t_t one; v_t two; }",
    "headers": "u_t u;",
    "parser": """
        state start { transition select(packet.lookahead<bit<4>>()) { 1: one; default: two; } }
        state one { packet.extract(hdr.u.one); transition accept; }
        state two { packet.extract(hdr.u.two); transition accept; }""",
}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("", b"\x12"),
        ("hdr.u.two.setValid(); hdr.u.two.v = 0x0304;", b"\3\4"),
        ("hdr.u.two = { 0x0506 };", b"\5\6"),
        ("hdr.u.one.setInvalid();", b""),
        ("hdr.u.two.setInvalid();", b""),
        ("if (hdr.u.isValid()) { hdr.u.one.kind = 9; }", b"\x09"),
    ],
)
def test_a_union_has_one_valid_member(make: Make, statement: str, expected: bytes) -> None:
    switch = make(ingress=statement, **UNION)
    assert sent(switch, b"\x12") == expected


VARBIT = {
    "types": "header o_t { bit<8> words; varbit<64> options; bit<8> end; }",
    "headers": "o_t o; o_t copy; t_t code;",
    "parser": """
        state start {
            packet.extract(hdr.o, (bit<32>) packet.lookahead<bit<8>>() * 8);
            transition accept;
        }""",
}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0Erest", b"\0E\0rest"),
        (b"\3abcErest", b"\3abcE\0rest"),
        (b"\x08abcdefghE", b"\x08abcdefghE\0"),
        (b"\x09abcdefghiE", bytes([HEADER_TOO_SHORT]) + b"\x09abcdefghiE"),
        (b"\5abc", bytes([TOO_SHORT]) + b"\5abc"),
    ],
)
def test_varbits(make: Make, data: bytes, expected: bytes) -> None:
    assert sent(make(ingress=REPORT_ERROR, **VARBIT), data) == expected


def test_a_header_with_a_varbit_is_copied_and_compared(make: Make) -> None:
    switch = make(ingress="hdr.copy = hdr.o; if (hdr.copy == hdr.o) { hdr.code.setValid(); }", **VARBIT)
    assert sent(switch, b"\2abE") == b"\2abE\2abE\0"


def test_advance_and_verify(make: Make) -> None:
    switch = make(
        headers="t_t code;",
        parser="""
        state start {
            packet.extract(hdr.t);
            packet.advance((bit<32>) hdr.t.kind);
            verify(packet.length() < 9, error.HeaderTooShort);
            packet.extract(hdr.h);
            transition accept;
        }""",
        ingress=REPORT_ERROR,
    )
    assert sent(switch, b"\x08A" + b"12345678") == bytes([8, HEADER_TOO_SHORT]) + b"12345678"
    assert sent(switch, b"\x08A" + b"123456") == bytes([8, TOO_SHORT]) + b"123456"
    assert sent(switch, b"\x07A") == bytes([7, INVALID_ARGUMENT]) + b"A"
    assert sent(switch, b"\x10A") == bytes([16, TOO_SHORT]) + b"A"


def test_a_parser_that_never_ends_is_stopped(make: Make) -> None:
    switch = make(
        headers="t_t code;",
        parser="state start { transition select(packet.lookahead<bit<8>>()) { 0: accept; default: start; } }",
        ingress=REPORT_ERROR,
    )
    assert sent(switch, b"\1") == bytes([TIMEOUT]) + b"\1"
    assert sent(switch, b"\0") == bytes([NO_ERROR]) + b"\0"


def test_fields_at_odd_bit_offsets(make: Make) -> None:
    switch = make(
        types="""
        header odd_t { bit<3> a; bit<70> b; bit<1> c; bit<131> d; bit<3> e; }
        """,
        headers="odd_t odd;",
        parser="state start { packet.extract(hdr.odd); transition accept; }",
        ingress="""
        hdr.odd.a = hdr.odd.a + 1; hdr.odd.b = hdr.odd.b + 1; hdr.odd.c = ~hdr.odd.c;
        hdr.odd.d = hdr.odd.d + 1; hdr.odd.e = hdr.odd.e + 1;""",
    )
    value = int.from_bytes(bytes(range(1, 27)), "big")
    widths = (3, 70, 1, 131, 3)
    expected, left = 0, sum(widths)
    for width in widths:
        left -= width
        field = value >> left & ((1 << width) - 1)
        expected = expected << width | (field + 1) % (1 << width)
    assert sent(switch, value.to_bytes(26, "big")) == expected.to_bytes(26, "big")


def test_invalid_headers_are_equal_and_match_as_zero(make: Make) -> None:
    switch = make(
        parser="state start { packet.extract(hdr.h); transition accept; }",
        ingress="""
        t_t other = { 5 };
        hdr.t = { 7 };
        if (hdr.t != other) { std.egress_spec = 1; }
        hdr.t.setInvalid(); other.setInvalid();
        if (hdr.t == other) { std.egress_spec = std.egress_spec + 2; }""",
    )
    assert switch.inject(1, frame()) == [Output(3, frame())]


EMIT_IN_A_LOOP = program(
    types="typedef bit<8> count_t;",
    headers="byte_t[3] bytes;",
    state="packet.extract(hdr.bytes[0]); packet.extract(hdr.bytes[1]); packet.extract(hdr.bytes[2]);",
    main="""control Loop(packet_out packet, in headers_t hdr) {
        apply {
            for (bit<32> again = 0; again < (bit<32>) hdr.byte.value; again = again + 1) {
                for (bit<32> i = 0; i < 3; i = i + 1) { packet.emit(hdr.bytes[i]); }
            }
            packet.emit(hdr.byte);
        }
    }
    V1Switch(TestParser(), TestChecksum(), TestIngress(), TestEgress(), TestChecksum(), Loop()) main;""",
)


def test_emit_in_a_loop() -> None:
    with Switch(compile_p4(kept_program(EMIT_IN_A_LOOP))) as switch:
        assert sent(switch, b"\2abcrest") == b"abcabc\2rest"
        assert sent(switch, b"\0abcrest") == b"\0rest"
        assert sent(switch, b"\xffabc") == b"abc" * 255 + b"\xff"


def test_a_loop_that_emits_without_end_is_stopped() -> None:
    """The packet is dropped once the headers reach the limit, and counted."""
    forever = EMIT_IN_A_LOOP.replace("again < (bit<32>) hdr.byte.value", "again < 4096")
    with Switch(compile_p4(kept_program(forever))) as switch:
        assert switch.inject(1, b"\2abc") == []
        assert switch.statistics()["drops"]["oversize"] == 1


def test_a_varbit_of_thousands_of_bits(make: Make) -> None:
    switch = make(
        types="header long_t { varbit<16384> data; }",
        headers="long_t long; t_t code;",
        parser="""state start { packet.extract(hdr.h);
            packet.extract(hdr.long, 8 * (bit<32>) hdr.h.c); transition accept; }""",
        ingress=REPORT_ERROR,
    )
    data = frame(c=2000) + bytes(range(250)) * 8
    assert sent(switch, data + b"rest") == data + bytes([NO_ERROR]) + b"rest"
