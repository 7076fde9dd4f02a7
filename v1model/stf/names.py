"""Mapping of STF's names and values, which may be abbreviated, to those of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from v1model import ir
from v1model.stf.parser import parse_number

if TYPE_CHECKING:
    from collections.abc import Iterable

_BITS_PER_DIGIT = {"0x": 4, "0b": 1, "0o": 3}


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def find(things: Iterable[N], name: str, kind: str) -> N:
    """Return the thing called `name`, or the only one whose name ends with it; raises ValueError.

    As in p4c's STF runner, the end may begin within a word.
    """
    return _the_only(list(things), name, kind, ("." + name, name))


def find_whole(things: Iterable[N], name: str, kind: str) -> N:
    """Return the thing called `name`, or the only one whose name ends with `.name`; raises ValueError.

    This is simple_switch_CLI's rule.
    """
    return _the_only(list(things), name, kind, ("." + name,))


def _the_only(candidates: list[N], name: str, kind: str, endings: tuple[str, ...]) -> N:
    found = [thing for thing in candidates if thing.name == name]
    for ending in endings:
        found = found or [thing for thing in candidates if thing.name.endswith(ending)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{kind} {name} could be {', '.join(thing.name for thing in found)}")
    raise ValueError(
        f"no {kind} {name}; there are: {', '.join(thing.name for thing in candidates) or 'none'}"
    )


def find_key(keys: Iterable[ir.Key], name: str) -> int:
    """Return the position of a key; raises ValueError.

    `a$0.b` stands for `a[0].b`. `valid`, `$valid$` or a header's name alone stand for `isValid()`.
    """
    head, dollar, tail = name.partition("$")
    if dollar and tail[:1].isdigit():
        index, dot, rest = tail.partition(".")
        name = f"{head}[{index}]{dot}{rest}"
    stripped = name.strip("$")
    keys = list(keys)
    for wanted in (name, stripped.removesuffix("valid").rstrip("$") + "isValid()", f"{name}.$valid$"):
        try:
            return keys.index(find(keys, wanted, "key"))
        except ValueError:
            continue
    raise ValueError(f"no key {name}; there are: {', '.join(key.name for key in keys)}")


def key_width(key: ir.Key) -> int:
    return key.expression.type.width if isinstance(key.expression.type, ir.Bits) else 1


def default_match(key: ir.Key) -> ir.KeyMatch | None:
    """Return the match of a key that the STF leaves out."""
    return ir.KeyMatch(0) if key.match_kind == "exact" else None


def parse_match(key: ir.Key, text: str) -> ir.KeyMatch | None:
    """Return the match of a text; raises ValueError.

    `*` digits don't matter. VALUE/LENGTH is for lpm, LOW..HIGH (our extension) for range.
    """
    width = key_width(key)
    if key.match_kind == "lpm":
        return _lpm(text, width)
    if key.match_kind == "ternary":
        value, mask = _masked(text, width)
        return ir.KeyMatch(value & mask, mask=mask) if mask else None
    if key.match_kind == "range":
        low, dots, high = text.partition("..")
        return ir.KeyMatch(_fitting(low, width), high=_fitting(high if dots else low, width))
    return ir.KeyMatch(_fitting(text, width))


def _lpm(text: str, width: int) -> ir.KeyMatch | None:
    value_text, slash, length_text = text.partition("/")
    if slash:
        length = parse_number(length_text)
    else:
        digits = value_text[2:]
        # As in the reference, the digits written are the prefix if there is no length.
        length = (len(digits) - digits.count("*")) * _BITS_PER_DIGIT.get(value_text[:2].lower(), 0) or width
    if not 0 <= length <= width:
        raise ValueError(f"{text}: a prefix of {length} bits for a key of {width}")
    value = _fitting(value_text.replace("*", "0"), width)
    value = value >> width - length << width - length
    return ir.KeyMatch(value, prefix_length=length) if length else None


def _masked(text: str, width: int) -> tuple[int, int]:
    prefix, digits = text[:2].lower(), text[2:]
    if prefix not in _BITS_PER_DIGIT:
        return _fitting(text, width), (1 << width) - 1
    ones = {"0x": "F", "0b": "1", "0o": "7"}[prefix]
    mask = int("".join("0" if digit == "*" else ones for digit in digits), 1 << _BITS_PER_DIGIT[prefix])
    return _fitting(text.replace("*", "0"), width), mask & (1 << width) - 1


def _fitting(text: str, width: int) -> int:
    value = parse_number(text)
    if value < 0 or value >> width:
        raise ValueError(f"{text} does not fit {width} bits")
    return value
