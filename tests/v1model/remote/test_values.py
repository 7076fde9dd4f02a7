"""weir-cli reads numbers, addresses and matches as simple_switch_CLI does."""

from __future__ import annotations

import pytest

from v1model.ir import Bits, Key, KeyMatch, Var
from v1model.remote.values import parse_match, parse_value


@pytest.mark.parametrize(
    ("text", "width", "value"),
    [
        ("0x10", 8, 16),
        ("17", 8, 17),
        ("true", 1, 1),
        ("10.0.0.1", 32, 0x0A000001),
        ("00:11:22:33:44:55", 48, 0x001122334455),
        ("::1", 128, 1),
        ("2001:db8::5", 128, 0x20010DB8000000000000000000000005),
    ],
)
def test_values(text: str, width: int, value: int) -> None:
    assert parse_value(text, width) == value
    with pytest.raises(ValueError, match="does not fit 0 bits"):
        parse_value(text, 0)


def test_matches() -> None:
    def key(kind: str) -> Key:
        return Key(Var("x", Bits(16)), kind, "x")

    assert parse_match(key("lpm"), "0x1234/8") == KeyMatch(0x1200, prefix_length=8)
    assert parse_match(key("lpm"), "0/0") is None
    assert parse_match(key("ternary"), "0x1234&&&0xff00") == KeyMatch(0x1200, mask=0xFF00)
    for kind, meant in (("ternary", "5&&&0xffff"), ("lpm", "5/16")):  # a mask that was forgotten
        with pytest.raises(ValueError, match=meant):
            parse_match(key(kind), "5")
    assert parse_match(key("range"), "1->9") == KeyMatch(1, high=9)
    assert parse_match(key("optional"), "0&&&0") is None
    with pytest.raises(ValueError, match="a prefix of 17 bits"):
        parse_match(key("lpm"), "1/17")
