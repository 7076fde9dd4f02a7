"""Random packets that a program's parser accepts, the fuzzer's seeds.

Each is a walk over the parser's states, with headers filled so that the walk's select expressions match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend.layout import header_bits, leaves, value_width, varbit_of

if TYPE_CHECKING:
    import random

MAX_STATES = 64
MAX_PAYLOAD_BYTES = 64
MAX_PACKET_BYTES = 2048


class Walk:
    """Walk that builds one packet. A select's expressions identify the fields to change."""

    def __init__(self, parser: ir.Parser, rng: random.Random) -> None:
        self._states = {state.name: state for state in parser.states}
        self._next, self._rng = parser.start, rng
        self._bits = ""
        self._fields: dict[tuple[str, ...], tuple[int, int]] = {}  # path -> (offset, width) in bits

    def packet(self) -> bytes:
        for _ in range(MAX_STATES):
            state = self._states.get(self._next)
            if state is None or len(self._bits) > MAX_PACKET_BYTES * 8:
                break
            for statement in state.body:
                self._statement(statement)
            self._transition(state.transition)
        padded = self._bits + "0" * (-len(self._bits) % 8)
        head = int(padded, 2).to_bytes(len(padded) // 8, "big") if padded else b""
        return head + self._rng.randbytes(self._rng.randrange(MAX_PAYLOAD_BYTES))

    def _statement(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.Block):
            for inner in statement.body:
                self._statement(inner)
        elif isinstance(statement, ir.Extract):
            self._extract(statement)

    def _extract(self, statement: ir.Extract) -> None:
        start, header = len(self._bits), statement.header
        path = _path(statement.target) if statement.target is not None else None
        varbit = varbit_of(header)
        length = header_bits(header)
        if varbit is not None:
            length += self._rng.randrange(varbit.max_width // 8 + 1) * 8
        self._bits += f"{self._rng.getrandbits(length):0{length}b}" if length else ""
        for leaf in leaves(header.fields):
            if path is not None and not isinstance(leaf.type, ir.Varbit):
                self._fields[(*path, *leaf.path)] = start + leaf.offset_bits, value_width(leaf.type)

    def _transition(self, transition: ir.Transition) -> None:
        if not transition.cases:
            self._next = "reject"
            return
        matches, self._next = self._rng.choice(transition.cases)
        for expression, match in zip(transition.expressions, matches, strict=False):
            path = _path(expression)
            if match is not None and path in self._fields:
                self._set(*self._fields[path], match)

    def _set(self, offset: int, width: int, match: ir.SelectMatch) -> None:
        value = match.value if match.high is None else self._rng.randint(match.value, match.high)
        mask = (1 << width) - 1 if match.mask is None else match.mask
        old = int(self._bits[offset : offset + width] or "0", 2)
        new = (old & ~mask | value & mask) & ((1 << width) - 1)
        self._bits = self._bits[:offset] + f"{new:0{width}b}" + self._bits[offset + width :]


def _path(expression: ir.Expr) -> tuple[str, ...] | None:
    """Return the names that lead to an l-value; all elements of a stack count as one."""
    match expression:
        case ir.Var(name, _):
            return (name,)
        case ir.Member(base, field, _):
            path = _path(base)
            return None if path is None else (*path, field)
        case ir.Index(base) | ir.StackNext(base) | ir.StackLast(base) | ir.Cast(base):
            return _path(base)
    return None


def packets(program: ir.Program, count: int, rng: random.Random) -> list[bytes]:
    return [Walk(program.parser, rng).packet() for _ in range(count)]
