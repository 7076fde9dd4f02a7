"""Mutations: small changes of a Python source, each of which should make a test fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARED: Final = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
_REVERSED_ORDER: Final = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
}
"""Changes of comparisons of times, which reverse the order.

No code promises anything about two times that are exactly equal, but code may promise which is later.
"""
_COMPUTED: Final = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.Mod: ("%", "+"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """Change of a source: its characters from `begin` to `end` become `by`."""

    begin: int
    end: int
    by: str
    line: int

    def apply(self, source: str) -> str:
        """Return the changed source."""
        return source[: self.begin] + self.by + source[self.end :]


def mutations(source: str) -> list[Mutation]:
    """Return all mutations of a source, in order of their places.

    Docstrings, annotations, log lines and texts are not changed. Nor are statistics, which only reports read,
    and numbers that have a name, which tests use. A comparison of times is reversed, not moved by one.
    """
    return sorted(_Finder(source).found(), key=lambda one: (one.begin, one.end, one.by))


class _Finder:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = ast.parse(source)
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line.encode()))
        self._bytes = source.encode()

    def found(self) -> Iterator[Mutation]:
        """Yield all mutations, in no order."""
        for node in self._mutable_nodes():
            yield from self._of(node)

    def _mutable_nodes(self) -> Iterator[ast.AST]:
        """Yield all nodes that may be changed.

        These are all but annotations, declarations of fields, statements that only log or count something,
        and imports for types alone.
        """
        waiting: list[ast.AST] = [self._tree]
        while waiting:
            node = waiting.pop()
            yield node
            for name, value in ast.iter_fields(node):
                if name in ("annotation", "returns", "decorator_list", "type_comment"):
                    continue
                if name == "keywords" and isinstance(node, ast.Call) and _is_field(node.func):
                    continue
                if name == "value" and isinstance(value, ast.Constant | ast.BinOp) and _names(node):
                    continue
                children = value if isinstance(value, list) else [value]
                waiting += [child for child in children if isinstance(child, ast.AST) and not _says(child)]

    def _of(self, node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare):
            left_operands = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, left_operands, node.comparators, strict=False):
                of_times = _is_time(left) or _is_time(right)
                known = _COMPARED | _REVERSED_ORDER if of_times else _COMPARED
                if type(operator) in known:
                    yield from self._between(left, right, *known[type(operator)])
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            yield from self._between(node.left, node.right, *_COMPUTED[type(node.op)])
        elif isinstance(node, ast.AugAssign) and type(node.op) in _COMPUTED:
            yield from self._between(node.target, node.value, *(f"{o}=" for o in _COMPUTED[type(node.op)]))
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                neutral = "True" if isinstance(node.op, ast.And) else "False"
                yield self._replaced(value, neutral)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self._replaced(node, f"({ast.unparse(node.operand)})")
        elif isinstance(node, ast.Constant):
            yield from self._of_constant(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            yield self._replaced(node, "pass")

    def _of_constant(self, node: ast.Constant) -> Iterator[Mutation]:
        if isinstance(node.value, bool):
            yield self._replaced(node, str(not node.value))
        elif isinstance(node.value, int):
            yield self._replaced(node, str(node.value + 1))

    def _between(self, left: ast.expr, right: ast.expr, before: str, after: str) -> Iterator[Mutation]:
        """Yield the change of the operator between two operands, unless a comment or a bracket hides it."""
        begin, end = self._at(left)[1], self._at(right)[0]
        gap = self._source[begin:end]
        if gap.count(before) == 1 and "#" not in gap:
            at = begin + gap.index(before)
            yield Mutation(at, at + len(before), after, left.end_lineno or 0)

    def _replaced(self, node: ast.expr | ast.stmt, by: str) -> Mutation:
        begin, end = self._at(node)
        return Mutation(begin, end, by, node.lineno)

    def _at(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return the places of a node's first character and of the one behind it, in characters."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[node.end_lineno - 1] + node.end_col_offset
        return len(self._bytes[:begin].decode()), len(self._bytes[:end].decode())


def _names(node: ast.AST) -> bool:
    """Return whether a node gives a value the name of a constant or a field."""
    if isinstance(node, ast.Assign):
        return all(isinstance(one, ast.Name) and one.id.isupper() for one in node.targets)
    return isinstance(node, ast.AnnAssign)


def _is_field(function: ast.expr) -> bool:
    """Return whether a call of this function declares a field of a dataclass."""
    return isinstance(function, ast.Name) and function.id == "field"


def _is_time(node: ast.expr) -> bool:
    """Return whether a value is a time, by its name or the names that it is computed from: _s or _ms."""
    if isinstance(node, ast.BinOp):
        return _is_time(node.left) or _is_time(node.right)
    of = node.func if isinstance(node, ast.Call) else node
    name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    return name.lower().endswith(("_s", "_ms"))


def _counts(node: ast.AST) -> bool:
    """Return whether a statement sets a field of statistics, or an entry of such a field."""
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    field = target.value if isinstance(target, ast.Subscript) else target
    return isinstance(field, ast.Attribute) and ast.unparse(field.value).endswith("stats")


def _says(node: ast.AST) -> bool:
    """Return whether a node only logs, counts, asserts, formats a text, or is for the type checker."""
    if _counts(node):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.JoinedStr | ast.Assert):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Name) and call.func.value.id == "log"
    return False
