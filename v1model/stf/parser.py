"""Parser of STF: one statement a line, # starts a comment, keywords in any case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.stf.statements import Statement

COMMANDS = frozenset(
    (
        "mirroring_add",
        "mirroring_add_mc",
        "mirroring_delete",
        "mirroring_get",
        "mc_mgrp_create",
        "mc_node_create",
        "mc_node_update",
        "mc_node_associate",
        "counter_read",
        "counter_write",
        "register_read",
        "register_write",
        "register_reset",
        "meter_get_rates",
        "meter_set_rates",
        "meter_array_set_rates",
    )
)

_NAME = r'(?:"[^"]+"|[\w.$\[\]]+)'
_INVOCATION = re.compile(rf"({_NAME})\s*\(([^()]*)\)\s*(?:=\s*(\S+))?\s*$")
_PAIR = re.compile(rf"\s*({_NAME})\s*:\s*([^\s,]+)\s*")
_ADD = re.compile(rf"({_NAME})\s+(?:(\d+)\s+(?![:\s]))?(.*)$")
_PACKET = re.compile(r"(\d+)\s*(.*)$")
_CHECK_COUNTER = re.compile(
    rf"({_NAME})\s*\(\s*([\w$]+)\s*\)\s*(?:(packets|bytes)?\s*(==|!=|<=|<|>=|>)\s*(\w+)\s*)?$", re.IGNORECASE
)


def parse(text: str) -> list[Statement]:
    """Return the statements of a text; raises StfError at the first line that is not STF."""
    statements = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if line:
            statements.append(_parse_line(number, line))
    return statements


def parse_number(text: str) -> int:
    """Return a decimal, 0x, 0b or 0o number; raises ValueError."""
    base = 0 if text[:2].lower() in ("0x", "0b", "0o") else 10
    try:
        return int(text, base)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _parse_line(number: int, line: str) -> Statement:
    keyword, _, rest = line.partition(" ")
    keyword, rest = keyword.lower(), rest.strip()
    if "\t" in keyword:
        keyword, _, first = keyword.partition("\t")
        rest = f"{first} {rest}".strip()
    if keyword in COMMANDS:
        return Command(number, keyword, tuple(rest.split()))
    if keyword not in _PARSERS:
        raise StfError(number, f"unknown statement {keyword!r}")
    return _PARSERS[keyword](number, rest)


def _match(pattern: re.Pattern[str], number: int, rest: str, form: str) -> re.Match[str]:
    match = pattern.match(rest)
    if not match:
        raise StfError(number, f"expected: {form}")
    return match


def _packet(number: int, rest: str) -> Packet:
    match = _match(_PACKET, number, rest, "packet PORT HEX-DIGITS")
    try:
        return Packet(number, int(match[1]), bytes.fromhex(match[2]))
    except ValueError:
        raise StfError(number, "the packet is not an even number of hex digits") from None


def _expect(number: int, rest: str) -> Expect:
    match = _match(_PACKET, number, rest, "expect PORT [HEX-DIGITS]")
    digits = "".join(match[2].split()).upper()
    exact = digits.endswith("$")
    digits = digits.rstrip("$")
    if not re.fullmatch(r"[0-9A-F*]*", digits):
        raise StfError(number, "an expected packet has hex digits, * and a $ at its end")
    return Expect(number, int(match[1]), digits if digits or exact else None, exact)


def _add(number: int, rest: str) -> Add:
    match = _match(_ADD, number, rest, "add TABLE [PRIORITY] KEY:VALUE... ACTION(NAME:VALUE, ...)")
    table, priority, tail = _unquoted(match[1]), match[2], match[3]
    invocation = _INVOCATION.search(tail)
    if not invocation:
        raise StfError(number, "no action: expected ACTION(NAME:VALUE, ...) at the end")
    matches = _pairs(number, tail[: invocation.start()])
    action = _action(number, invocation)
    return Add(number, table, int(priority) if priority else None, matches, action, invocation[3] or "")


def _setdefault(number: int, rest: str) -> SetDefault:
    match = _match(_ADD, number, rest, "setdefault TABLE ACTION(NAME:VALUE, ...)")
    invocation = _match(_INVOCATION, number, match[3], "setdefault TABLE ACTION(NAME:VALUE, ...)")
    return SetDefault(number, _unquoted(match[1]), _action(number, invocation))


def _action(number: int, invocation: re.Match[str]) -> Invocation:
    return Invocation(_unquoted(invocation[1]), _pairs(number, invocation[2].replace(",", " ")))


def _pairs(number: int, text: str) -> tuple[tuple[str, str], ...]:
    pairs, position = [], 0
    while position < len(text.rstrip()):
        match = _PAIR.match(text, position)
        if not match:
            raise StfError(number, f"expected NAME:VALUE at {text[position:].strip()!r}")
        pairs.append((_unquoted(match[1]), match[2]))
        position = match.end()
    return tuple(pairs)


def _check_counter(number: int, rest: str) -> CheckCounter:
    form = "check_counter NAME(INDEX) [packets|bytes RELATION NUMBER]"
    match = _match(_CHECK_COUNTER, number, rest, form)
    value = parse_number(match[5]) if match[5] else 0
    unit = (match[3] or "packets").lower()
    return CheckCounter(number, _unquoted(match[1]), match[2], unit, match[4] or "==", value)


def _remove(number: int, rest: str) -> RemoveAll:
    if rest.lower() != "all":
        raise StfError(number, "expected: remove all")
    return RemoveAll(number)


def _unquoted(name: str) -> str:
    return name.strip('"')


_PARSERS: dict[str, Callable[[int, str], Statement]] = {
    "packet": _packet,
    "expect": _expect,
    "no_packet": lambda number, _: NoPacket(number),
    "add": _add,
    "setdefault": _setdefault,
    "remove": _remove,
    "check_counter": _check_counter,
    "wait": lambda number, _: Wait(number),
}
