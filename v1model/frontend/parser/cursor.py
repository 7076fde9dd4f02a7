"""Where the parser stands in the tokens, and which names are types there.

P4_16's grammar depends on whether an identifier names a type (`a < b > (c)`, `(a) - b`), so the
parser keeps a stack of scopes in which each declared name is a type or not. Names that it has not
seen, such as those of parser states, are no types.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import END, END_PRAGMA, IDENTIFIER, RIGHT_SHIFT_HALF, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Item = TypeVar("Item")

# Keywords that are also names where the grammar cannot mistake them.
NAME_KEYWORDS = frozenset({"actions", "apply", "entries", "key", "list", "priority", "state", "type"})
CLOSING_ANGLES = frozenset({">", RIGHT_SHIFT_HALF})


class Cursor:
    """The tokens, the position in them, and the scopes of type names."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.kind = tokens[0].kind
        # Types declared inside a typedef, which stand before it in the program.
        self.hoisted: list[ast.Declaration] = []
        self._scopes: list[dict[str, bool]] = [{}]

    # --- tokens ---

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def span(self) -> ast.Span:
        return self.tokens[self.position].span

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.position + distance, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """The present token; moves on behind it, but never behind END."""
        token = self.tokens[self.position]
        if token.kind != END:
            self.position += 1
            self.kind = self.tokens[self.position].kind
        return token

    def accept(self, kind: str) -> bool:
        """Whether the present token is of `kind`; moves on if so."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, where: str = "") -> Token:
        if self.kind != kind:
            self.fail(f"expected {_quote(kind)}{' ' + where if where else ''}")
        return self.advance()

    def expect_close_angle(self) -> Token:
        """The `>` that closes type arguments, also as the first half of `>>`."""
        if self.kind not in CLOSING_ANGLES:
            self.fail("expected '>' to close the type arguments")
        return self.advance()

    def fail(self, message: str, hint: str = "") -> NoReturn:
        """Refuses the present token."""
        found = {END: "the end of the file", END_PRAGMA: "the end of the line"}.get(self.kind)
        raise CompileError(f"{message}, found {found or _quote(self.token.text)}", self.span, hint)

    def attempt(self, rule: Callable[[Cursor], Item]) -> Item | None:
        """What `rule` parses, or None, with nothing consumed, if it cannot."""
        start = self.position
        try:
            return rule(self)
        except CompileError:
            self.position, self.kind = start, self.tokens[start].kind
            return None

    def span_from(self, start: ast.Span) -> ast.Span:
        """From `start` to the token before the present one, as far as they share a line."""
        return join(start, self.tokens[self.position - 1].span)

    # --- repetition ---

    def separated(
        self, rule: Callable[[Cursor], Item], end: str, *, trailing_comma: bool = False
    ) -> list[Item]:
        """`[rule {"," rule}] end`; consumes `end`."""
        items: list[Item] = []
        while self.kind != end:
            items.append(rule(self))
            if self.kind == end:
                break
            self.expect(",", f"or {_quote(end)}")
            if self.kind == end and not trailing_comma:
                self.fail("expected another element after ','")
        self.advance()
        return items

    def braced(self, rule: Callable[[Cursor], Item]) -> list[Item]:
        """`"{" {rule} "}"`."""
        self.expect("{")
        items: list[Item] = []
        while self.kind != "}":
            if self.kind == END:
                self.fail("expected '}'")
            items.append(rule(self))
        self.advance()
        return items

    # --- names and scopes ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    def declare(self, name: str, *, is_type: bool = False) -> None:
        self._scopes[-1][name] = is_type

    def is_type(self, name: str) -> bool:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return False

    def is_global_type(self, name: str) -> bool:
        return self._scopes[0].get(name, False)

    def at_type_name(self) -> bool:
        """Whether a type's name starts here (`T` or `.T`)."""
        if self.kind == IDENTIFIER:
            return self.is_type(self.token.text)
        return self.kind == "." and self.peek().kind == IDENTIFIER and self.is_global_type(self.peek().text)

    def at_name(self) -> bool:
        return self.kind == IDENTIFIER or self.kind in NAME_KEYWORDS

    def name(self, what: str = "a name") -> Token:
        if not self.at_name():
            self.fail(f"expected {what}")
        return self.advance()


def join(start: ast.Span, end: ast.Span) -> ast.Span:
    """One span over both if they stand on one line, else the first."""
    if start is end or start.line != end.line or start.file != end.file or end.column < start.column:
        return start
    return ast.Span(start.file, start.line, start.column, end.column + end.length - start.column)


def _quote(kind: str) -> str:
    return "'>'" if kind == RIGHT_SHIFT_HALF else kind if kind == IDENTIFIER else f"'{kind}'"
