"""Small changes of a Python source, each of which should make a test fail."""

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
_COMPUTED: Final = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.Mod: ("%", "+"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: the characters from `begin` to `end` of a source become `by`."""

    begin: int
    end: int
    by: str
    line: int

    def apply(self, source: str) -> str:
        """Return the changed source."""
        return source[: self.begin] + self.by + source[self.end :]


def mutations(source: str) -> list[Mutation]:
    """Return all that this module knows of a source. What only says something (docstrings, annotations, log
    lines, texts) is left alone, and so are numbers that have a name: tests go by them."""
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
        """Return all mutations, in no order."""
        for node in self._told():
            yield from self._of(node)

    def _told(self) -> Iterator[ast.AST]:
        """All nodes but those of annotations, of calls that log, and of the imports for types alone."""
        waiting: list[ast.AST] = [self._tree]
        while waiting:
            node = waiting.pop()
            yield node
            for name, value in ast.iter_fields(node):
                if name in ("annotation", "returns", "decorator_list", "keywords", "type_comment"):
                    continue
                if (
                    name == "value"
                    and isinstance(node, ast.AnnAssign)
                    and isinstance(value, ast.Constant | ast.BinOp)
                ):
                    continue
                children = value if isinstance(value, list) else [value]
                waiting += [child for child in children if isinstance(child, ast.AST) and not _says(child)]

    def _of(self, node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare):
            lefts = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, lefts, node.comparators, strict=False):
                if type(operator) in _COMPARED:
                    yield from self._between(left, right, *_COMPARED[type(operator)])
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
        """The operator between two operands; not where a comment or a bracket hides it."""
        begin, end = self._at(left)[1], self._at(right)[0]
        gap = self._source[begin:end]
        if gap.count(before) == 1 and "#" not in gap:
            at = begin + gap.index(before)
            yield Mutation(at, at + len(before), after, left.end_lineno or 0)

    def _replaced(self, node: ast.expr | ast.stmt, by: str) -> Mutation:
        begin, end = self._at(node)
        return Mutation(begin, end, by, node.lineno)

    def _at(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """In characters."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[node.end_lineno - 1] + node.end_col_offset
        return len(self._bytes[:begin].decode()), len(self._bytes[:end].decode())


def _says(node: ast.AST) -> bool:
    """Whether it logs, raises with a text, or is for the type checker."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.JoinedStr | ast.Assert):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Name) and call.func.value.id == "log"
    return False
