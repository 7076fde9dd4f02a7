"""STF text to statements."""

import pytest

from v1model.stf.parser import parse
from v1model.stf.statements import (
    Add,
    CheckCounter,
    Command,
    Expect,
    Invocation,
    NoPacket,
    Packet,
    RemoveAll,
    SetDefault,
    StfError,
    Wait,
)


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        ("packet 0 0011 22AA", Packet(1, 0, bytes.fromhex("001122aa"))),
        ("PACKET 12 00", Packet(1, 12, b"\0")),
        ("expect 3 00**fF", Expect(1, 3, "00**FF", False)),
        ("expect 3 00 ff $", Expect(1, 3, "00FF", True)),
        ("expect 3 $", Expect(1, 3, "", True)),
        ("expect 5", Expect(1, 5, None, False)),
        ("no_packet", NoPacket(1)),
        ("wait", Wait(1)),
        ("remove all", RemoveAll(1)),
        ("setdefault t act(port:2)", SetDefault(1, "t", Invocation("act", (("port", "2"),)))),
        (
            "add tab h.a:0x1 h.b: 2 c.act(p:1, q:0x2) = A",
            Add(
                1,
                "tab",
                None,
                (("h.a", "0x1"), ("h.b", "2")),
                Invocation("c.act", (("p", "1"), ("q", "0x2"))),
                "A",
            ),
        ),
        ("add tab 100 f:0x0*** act()", Add(1, "tab", 100, (("f", "0x0***"),), Invocation("act", ()))),
        (
            'add "a tab" extra$0.h:1/8 act()',
            Add(1, "a tab", None, (("extra$0.h", "1/8"),), Invocation("act", ())),
        ),
        ("check_counter c(10) packets >= 2", CheckCounter(1, "c", "10", "packets", ">=", 2)),
        ("check_counter c(1)", CheckCounter(1, "c", "1", "packets", "==", 0)),
        ("mc_node_create 400 6 7", Command(1, "mc_node_create", ("400", "6", "7"))),
        ("mirroring_add\t5 4", Command(1, "mirroring_add", ("5", "4"))),
    ],
)
def test_each_statement(line: str, statement: object) -> None:
    assert parse(line) == [statement]


def test_comments_and_empty_lines_are_skipped_but_counted() -> None:
    assert parse("# all\n\n  packet 1 00  # one\n") == [Packet(3, 1, b"\0")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("frobnicate 1", "unknown statement 'frobnicate'"),
        ("packet 0 001", "even number of hex digits"),
        ("packet x 00", "expected: packet PORT"),
        ("expect 0 00gg", "hex digits"),
        ("add tab f:1", "no action"),
        ("add tab f 1 act()", "expected NAME:VALUE"),
        ("remove some", "expected: remove all"),
        ("check_counter c", "expected: check_counter"),
    ],
)
def test_what_is_not_stf_names_line_and_reason(line: str, reason: str) -> None:
    with pytest.raises(StfError, match="line 2: .*" + reason):
        parse("wait\n" + line)
