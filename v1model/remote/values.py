"""Values and matches in simple_switch_CLI's notation: numbers, IPv4, IPv6 and MAC addresses."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from v1model.ir import Bits, KeyMatch
from v1model.stf.parser import parse_number

if TYPE_CHECKING:
    from v1model import ir

_MAC = re.compile(r"[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){5}")


def parse_value(text: str, width: int) -> int:
    """Return the value of a text; raises ValueError if it does not fit `width` bits."""
    if text.lower() in ("true", "false"):
        value = int(text.lower() == "true")
    elif _MAC.fullmatch(text):
        value = int.from_bytes(bytes(int(part, 16) for part in text.split(":")), "big")
    elif text.count(".") == 3 or text.count(":") >= 2:
        value = int(ipaddress.ip_address(text))
    else:
        value = parse_number(text)
    if value < 0 or value >> width:
        raise ValueError(f"{text} does not fit {width} bits")
    return value


def parse_match(key: ir.Key, text: str) -> KeyMatch | None:
    """Return the match of a text in the form of the key's kind; raises ValueError.

    The forms are VALUE, VALUE/LENGTH, VALUE&&&MASK and LOW->HIGH.
    """
    width = key.expression.type.width if isinstance(key.expression.type, Bits) else 1
    if key.match_kind == "lpm":
        value, slash, length = text.partition("/")
        if not slash:
            raise ValueError(f"{text}: an lpm match is VALUE/LENGTH, such as {text}/{width}")
        prefix = parse_number(length)
        if not 0 <= prefix <= width:
            raise ValueError(f"{text}: a prefix of {prefix} bits for a key of {width}")
        number = parse_value(value, width) >> width - prefix << width - prefix
        return KeyMatch(number, prefix_length=prefix) if prefix else None
    if key.match_kind in ("ternary", "optional"):
        value, ands, mask_text = text.partition("&&&")
        if not ands and key.match_kind == "ternary":
            raise ValueError(
                f"{text}: a ternary match is VALUE&&&MASK, such as {text}&&&{(1 << width) - 1:#x}"
            )
        mask = parse_value(mask_text, width) if ands else (1 << width) - 1
        if key.match_kind == "optional":
            return KeyMatch(parse_value(value, width)) if mask else None
        return KeyMatch(parse_value(value, width) & mask, mask=mask) if mask else None
    if key.match_kind == "range":
        low, arrow, high = text.partition("->")
        return KeyMatch(parse_value(low, width), high=parse_value(high if arrow else low, width))
    return KeyMatch(parse_value(text, width))


def show_match(match: KeyMatch | None) -> str:
    if match is None:
        return "any"
    if match.prefix_length is not None:
        return f"{match.value:#x}/{match.prefix_length}"
    if match.high is not None:
        return f"{match.value:#x}->{match.high:#x}"
    return f"{match.value:#x}" if match.mask is None else f"{match.value:#x}&&&{match.mask:#x}"
