"""Constraints @entry_restriction and @action_restriction on entries, in p4-constraints' language.

    @entry_restriction("ttl::mask != 0 -> is_ipv4 == 1; ::priority < 100;")

An exact key is a number. Other keys have fields: value and mask (ternary, optional), value and prefix_length
(lpm), low and high (range). Such a key equals a number if it matches only that number.
"""

from __future__ import annotations

import logging
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from v1model.dataplane import DataPlaneError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from v1model.ir import KeyMatch
    from v1model.protos.p4.config.v1 import p4info_pb2

    Values = Mapping[str, "int | Matched"]
    Rule = Callable[[Values], Any]

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 65_536  # parsed in some 0.2 s; the 8 MiB of a message would take 30 s
PRIORITY = "::priority"
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    |(?P<sign>::|->|&&|\|\||==|!=|<=|>=|[-!<>();])""",
    re.VERBOSE | re.DOTALL,
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Matched(NamedTuple):
    """Match of an entry's key: the fields by name, and the bits of the key."""

    fields: dict[str, int]
    exact: int | None  # the only number that matches
    width: int


def matched(kind: str, width: int, match: KeyMatch | None) -> int | Matched:
    """Return the value of a key for its entry's match."""
    full = (1 << width) - 1
    value = match.value if match else 0
    if kind == "exact":
        return value
    if kind == "lpm":
        length = match.prefix_length or 0 if match else 0
        return Matched({"value": value, "prefix_length": length}, value if length == width else None, width)
    if kind == "range":
        high = match.high if match and match.high is not None else full
        return Matched({"low": value, "high": high}, value if value == high else None, width)
    mask = 0 if match is None else full if match.mask is None else match.mask
    return Matched({"value": value, "mask": mask}, value if mask == full else None, width)


class Restriction(NamedTuple):
    """Rule with its text, and the name of what must satisfy it."""

    rule: Rule
    text: str
    what: str

    def require(self, values: Values) -> None:
        """Raise DataPlaneError INVALID_ARGUMENT if the rule does not hold."""
        try:
            holds = bool(self.rule(values))
        except (ValueError, TypeError) as error:
            message = f"{self.what}: its restriction can't be checked: {error}"
            raise DataPlaneError("INVALID_ARGUMENT", message) from None
        if not holds:
            shown = " ".join(_COMMENT.sub(" ", self.text).split())
            message = f"{self.what}: the restriction is not satisfied: {shown}"
            raise DataPlaneError("INVALID_ARGUMENT", message)


def restriction_of(preamble: p4info_pb2.Preamble, name: str, names: Iterable[str]) -> Restriction | None:
    """Return the restriction of the first annotation `name` over values of `names`, or None.

    One that can't be parsed is logged and not enforced.
    """
    for annotation in preamble.annotations:
        if annotation.startswith(f"@{name}("):
            text = "".join(re.sub(r"\\(.)", r"\1", part) for part in _STRING.findall(annotation))
            try:
                return Restriction(parse(text, names), text, preamble.name)
            except ValueError as error:
                logger.warning("@%s of %s is not enforced: %.200s", name, preamble.name, error)
                break
    return None


def parse(text: str, names: Iterable[str]) -> Rule:
    """Return the rule of a text, over values of these names; raises ValueError with what is wrong."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{len(text)} characters; at most {MAX_CHARACTERS} are possible")
    parser = _Parser(text, {*names, PRIORITY})
    try:
        return parser.rules()
    except RecursionError:
        raise ValueError("expressions inside one another too deeply") from None


class _Parser:
    """Parser of rules.

    `->` binds weakest, then `||`, `&&` and comparisons; `;` separates rules that all must hold.
    """

    def __init__(self, text: str, names: set[str]) -> None:
        self._names = names
        self._tokens = list(_tokens(text))
        self._at = 0

    def rules(self) -> Rule:
        found: list[Rule] = []
        while self._peek():
            found.append(self._implication())
            if self._peek() and not self._accept(";"):
                raise ValueError(f"expected ; instead of {self._peek()!r}")
        return lambda values: all(rule(values) for rule in found)

    def _implication(self) -> Rule:
        left = self._either()
        if not self._accept("->"):
            return left
        right = self._implication()
        return lambda values: not left(values) or right(values)

    def _either(self) -> Rule:
        left = self._both()
        while self._accept("||"):
            left = _or(left, self._both())
        return left

    def _both(self) -> Rule:
        left = self._comparison()
        while self._accept("&&"):
            left = _and(left, self._comparison())
        return left

    def _comparison(self) -> Rule:
        left = self._unary()
        sign = self._peek()
        if sign not in _COMPARISONS:
            return left
        self._at += 1
        return _compare(_COMPARISONS[sign], left, self._unary())

    def _unary(self) -> Rule:
        if self._accept("!"):
            inner = self._unary()
            return lambda values: not inner(values)
        if self._accept("-"):
            number = self._unary()
            return lambda values: -number(values)
        if self._accept("("):
            inner = self._implication()
            if not self._accept(")"):
                raise ValueError("expected )")
            return inner
        return self._value()

    def _value(self) -> Rule:
        token = self._peek()
        self._at += 1
        if token in ("true", "false"):
            return lambda _: token == "true"
        if token[:1].isdigit():
            number = int(token.replace("_", ""), 0 if token[:1] == "0" and len(token) > 1 else 10)
            return lambda _: number
        name = f"::{self._name()}" if token == "::" else token
        if name not in self._names:
            raise ValueError(f"{name!r} is no key, parameter or number")
        if not self._accept("::"):
            return lambda values: values[name]
        field = self._name()
        return lambda values: _field(values[name], field)

    def _name(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1] if self._at <= len(self._tokens) else ""

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _accept(self, sign: str) -> bool:
        is_next = self._peek() == sign
        self._at += is_next
        return is_next


def _tokens(text: str) -> Iterable[str]:
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"{text[at]!r} is no part of the language")
        at = token.end()
        if token.lastgroup:
            yield token[0]


def _and(left: Rule, right: Rule) -> Rule:
    return lambda values: left(values) and right(values)


def _or(left: Rule, right: Rule) -> Rule:
    return lambda values: left(values) or right(values)


def _compare(compared: Callable[[Any, Any], bool], left: Rule, right: Rule) -> Rule:
    return lambda values: compared(*_alike(left(values), right(values)))


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two values to compare: a field's -1 becomes all its bits, a key the number that it equals."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, _Bits) and isinstance(other, int) and other < 0:
            pair = int(one), other & (1 << one.width) - 1
            return pair if one is left else (pair[1], pair[0])
    return tuple(value.exact if isinstance(value, Matched) else value for value in (left, right))  # type: ignore[return-value]  # two


class _Bits(int):
    """Number of a given width in bits."""

    width: int


def _field(value: int | Matched, name: str) -> int:
    """Return a field of a key; an exact key has only `value`."""
    if isinstance(value, int):
        if name != "value":
            raise ValueError(f"an exact key has no {name}")
        return value
    if name not in value.fields:
        raise ValueError(f"this key has no {name}; it has {', '.join(value.fields)}")
    bits = _Bits(value.fields[name])
    bits.width = value.width
    return bits
