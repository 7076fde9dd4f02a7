"""Abbreviated names and match values."""

from dataclasses import dataclass

import pytest

from v1model import ir
from v1model.stf.names import find, find_key, parse_match


@dataclass
class Thing:
    name: str


THINGS = [Thing("ingress.t1"), Thing("ingress.t11"), Thing("egress.t2"), Thing("egress.sub.t1x")]


def key(match_kind: str, width: int = 32, name: str = "h.f") -> ir.Key:
    return ir.Key(ir.Var("x", ir.Bits(width)), match_kind, name)


@pytest.mark.parametrize(
    ("name", "full"),
    [("ingress.t1", "ingress.t1"), ("t1", "ingress.t1"), ("t2", "egress.t2"), ("11", "ingress.t11")],
)
def test_a_name_may_be_the_end_of_a_name(name: str, full: str) -> None:
    assert find(THINGS, name, "table").name == full


def test_unknown_and_ambiguous_names_list_the_choices() -> None:
    with pytest.raises(ValueError, match=r"no table t9; there are: ingress\.t1, "):
        find(THINGS, "t9", "table")
    with pytest.raises(ValueError, match=r"table 1 could be ingress\.t1, ingress\.t11"):
        find(THINGS, "1", "table")


@pytest.mark.parametrize(
    ("name", "position"),
    [("h.f", 0), ("f", 0), ("extra$0.h", 1), ("hdr.ip.isValid()", 2), ("ip.valid", 2), ("ip.$valid$", 2)],
)
def test_keys(name: str, position: int) -> None:
    keys = [key("exact"), key("ternary", name="extra[0].h"), key("exact", name="hdr.ip.isValid()")]
    assert find_key(keys, name) == position


@pytest.mark.parametrize(
    ("kind", "width", "text", "match"),
    [
        ("exact", 8, "0xff", ir.KeyMatch(255)),
        ("exact", 8, "0b101", ir.KeyMatch(5)),
        ("optional", 8, "7", ir.KeyMatch(7)),
        ("ternary", 32, "0x****0101", ir.KeyMatch(0x101, mask=0xFFFF)),
        ("ternary", 16, "0x25**", ir.KeyMatch(0x2500, mask=0xFF00)),
        ("ternary", 32, "0x25", ir.KeyMatch(0x25, mask=0xFF)),
        ("ternary", 8, "0b1*1", ir.KeyMatch(0b101, mask=0b101)),
        ("ternary", 8, "0x**", None),
        ("ternary", 8, "3", ir.KeyMatch(3, mask=0xFF)),
        ("lpm", 32, "0x0a010000/16", ir.KeyMatch(0x0A010000, prefix_length=16)),
        ("lpm", 32, "0x0a0100c9", ir.KeyMatch(0x0A0100C9, prefix_length=32)),
        ("lpm", 32, "0x0a01****", ir.KeyMatch(0x0A010000, prefix_length=16)),
        ("lpm", 32, "0/0", None),
        ("range", 16, "10..0x20", ir.KeyMatch(10, high=32)),
        ("range", 16, "10", ir.KeyMatch(10, high=10)),
    ],
)
def test_match_values(kind: str, width: int, text: str, match: ir.KeyMatch | None) -> None:
    assert parse_match(key(kind, width), text) == match


@pytest.mark.parametrize(
    ("kind", "text"), [("exact", "0x100"), ("exact", "x"), ("lpm", "0/33"), ("range", "1..999")]
)
def test_values_that_do_not_fit(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_match(key(kind, 8), text)
