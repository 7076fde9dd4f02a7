"""Position of the parser in the tokens, and the names that are types there.

P4_16's grammar depends on whether an identifier names a type (`a < b > (c)`, `(a) - b`). So the parser has a
stack of scopes in which each declared name is a type or not. Unseen names, such as those of parser states,
are no types.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

from v1model.diagnostics import Diagnostics
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.dialects import word_hint
from v1model.frontend.lexer import END, END_PRAGMA, IDENTIFIER, RIGHT_SHIFT_HALF, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Item = TypeVar("Item")

# Keywords that are also names where the grammar is not ambiguous.
NAME_KEYWORDS = frozenset({"actions", "apply", "entries", "key", "list", "priority", "state", "type"})
CLOSING_ANGLES = frozenset({">", RIGHT_SHIFT_HALF})
# Keywords that are never inside braces: before a misplaced one a closing brace is missing.
TOP_LEVEL = frozenset(
    {"control", "extern", "header", "header_union", "match_kind", "package", "parser", "struct", "typedef"}
)


class Cursor:
    """Tokens, the position in them, and the scopes of type names."""

    def __init__(self, tokens: list[Token], diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.diagnostics = diagnostics
        self.position = 0
        self.kind = tokens[0].kind
        # Types declared inside a typedef, which precede it in the program.
        self.hoisted: list[ast.Declaration] = []
        self._scopes: list[dict[str, bool]] = [{}]
        self._attempts = 0  # inside one another

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
        """Return the present token and move behind it, but never behind END."""
        token = self.tokens[self.position]
        if token.kind != END:
            self.position += 1
            self.kind = self.tokens[self.position].kind
        return token

    def accept(self, kind: str) -> bool:
        """Return whether the present token is of `kind`; moves behind it if so."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, where: str = "") -> Token:
        if self.kind == kind:
            return self.advance()
        before = self.tokens[self.position - 1]
        with self._recovering_if(kind == ";" and before.span.line < self.span.line):
            self.fail(f"expected {_quote(kind)}{' ' + where if where else ''}")
        return before  # as if it were at the end of the line before

    def expect_close_angle(self) -> Token:
        """Consume the `>` that closes type arguments, also as the first half of `>>`, and return it."""
        if self.kind not in CLOSING_ANGLES:
            self.fail("expected '>' to close the type arguments")
        return self.advance()

    def fail(self, message: str, hint: str = "", *, missing: str = "") -> NoReturn:
        """Raise CompileError at the present token. `missing` is the name that it needs."""
        found = {END: "the end of the file", END_PRAGMA: "the end of the line"}.get(self.kind)
        hint = hint or word_hint(self.tokens[self.position - 1], self.token)
        raise CompileError(
            f"{message}, found {found or _quote(self.token.text)}", self.span, hint, missing=missing
        )

    def attempt(self, rule: Callable[[Cursor], Item]) -> Item | None:
        """Return what `rule` parses, or None, with nothing consumed, if it cannot."""
        start = self.position
        self._attempts += 1
        try:
            return rule(self)
        except CompileError:
            self.position, self.kind = start, self.tokens[start].kind
            return None
        finally:
            self._attempts -= 1

    def span_from(self, start: ast.Span) -> ast.Span:
        """Return the span from `start` to the token before the present one, as far as they share a line."""
        return join(start, self.tokens[self.position - 1].span)

    # --- repetition ---

    def separated(
        self, rule: Callable[[Cursor], Item], end: str, *, trailing_comma: bool = False
    ) -> list[Item]:
        """Parse `[rule {"," rule}] end`; consumes `end`."""
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
        """Parse `"{" {rule} "}"`."""
        self.expect("{")
        items: list[Item] = []
        while self.kind != "}":
            if self.kind == END:
                self.fail("expected '}'")
            with self.recovering_item():
                items.append(rule(self))
        self.advance()
        return items

    # --- going on after an error ---

    @contextmanager
    def recovering_item(self) -> Iterator[None]:
        """Continue behind a statement, field, property or similar item after an error in it.

        At a keyword of the top level the error is raised: there the braces around the item are not closed.
        """
        start = self.position
        try:
            yield
        except CompileError as error:
            if self._attempts or self.kind in TOP_LEVEL or self.kind == END:
                raise
            self.diagnostics.add(error)
            if not self._skip_item(start):
                raise
            self.lose_names(start)

    @contextmanager
    def _recovering_if(self, condition: bool) -> Iterator[None]:
        try:
            yield
        except CompileError as error:
            if self._attempts or not condition:
                raise
            self.diagnostics.add(error)

    def _skip_item(self, start: int) -> bool:
        """Move behind the item that begins at `start`, and return whether that was possible.

        The item ends at `;`, at its closing brace, or before the brace that closes the list of items. At the
        end of the file and at a keyword of the top level it returns False.
        """
        depth = sum(_BRACES.get(token.kind, 0) for token in self.tokens[start : self.position])
        while self.kind not in TOP_LEVEL and self.kind != END:
            if self.kind == "}" and depth <= 0:
                return True
            kind = self.advance().kind
            depth += _BRACES.get(kind, 0)
            if depth <= 0 and kind in (";", "}") and self.kind != "else":
                return True
        return False

    def skip_declaration(self, start: int) -> None:
        """Move behind the declaration that begins at `start`: behind `;` or its braces, or to a top-level
        keyword.

        Tokens that can begin no declaration belong to this one, whose braces do not match.
        """
        depth = sum(_BRACES.get(token.kind, 0) for token in self.tokens[start : self.position])
        while self.kind != END and (self.position == start or self.kind not in TOP_LEVEL):
            kind = self.advance().kind
            depth = max(depth + _BRACES.get(kind, 0), 0)
            if depth == 0 and kind in (";", "}") and self.kind not in ("}", "apply", "state", "table", ";"):
                break
        self.lose_names(start)
        for token in self._type_names(start):  # later text can only be parsed if these are types
            self.declare(token.text, is_type=True)

    def _type_names(self, start: int) -> list[Token]:
        """Return the names of types that the skipped declaration at `start` declares, as far as is known."""
        names = [token for token in self.tokens[start : self.position] if token.kind == IDENTIFIER]
        kind = self.tokens[start].kind
        if kind in ("typedef", "type"):
            return names[-1:]
        return names[:1] if kind in TOP_LEVEL or kind == "enum" else []

    def lose_names(self, start: int) -> None:
        """Record that the names from `start` to the present token may be undeclared."""
        self.diagnostics.lose(
            token.text for token in self.tokens[start : self.position] if token.kind == IDENTIFIER
        )

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
        """Return whether a type's name starts here (`T` or `.T`)."""
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
    """Return one span over both if they are on one line, else the first."""
    if start is end or start.line != end.line or start.file != end.file or end.column < start.column:
        return start
    return ast.Span(start.file, start.line, start.column, end.column + end.length - start.column)


_BRACES = {"{": 1, "}": -1}


def _quote(kind: str) -> str:
    return "'>'" if kind == RIGHT_SHIFT_HALF else kind if kind == IDENTIFIER else f"'{kind}'"
