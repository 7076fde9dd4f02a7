"""Annotations: `@name`, `@name(tokens)`, `@name[expressions]`, `@name[key = value]`, `@pragma`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import END, END_PRAGMA, IDENTIFIER, KEYWORDS, PRAGMA
from v1model.frontend.parser.expressions import expression

if TYPE_CHECKING:
    from v1model.frontend.parser.cursor import Cursor


def annotation_list(p: Cursor) -> list[ast.Annotation]:
    """Parse `{annotation}`."""
    found: list[ast.Annotation] = []
    while p.kind == "@" or p.kind == PRAGMA:
        found.append(_annotation(p))
    return found


def _annotation(p: Cursor) -> ast.Annotation:
    is_pragma, span = p.kind == PRAGMA, p.advance().span
    if p.kind != IDENTIFIER and p.kind not in KEYWORDS:
        p.fail("expected the name of an annotation")
    name = p.advance().text
    annotation = ast.Annotation(p.span_from(span), name)
    if is_pragma:
        _unstructured_body(p, annotation, END_PRAGMA)
    elif p.accept("("):
        _unstructured_body(p, annotation, ")")
    elif p.accept("["):
        annotation.expressions, annotation.pairs = _structured_body(p, "]")
    return annotation


def _structured_body(p: Cursor, end: str) -> tuple[list[ast.Expression], dict[str, ast.Expression]]:
    """Parse a list of expressions or of `key = value`; consumes `end`."""
    pairs: dict[str, ast.Expression] = {}
    if not (p.at_name() and p.peek().kind == "="):
        return p.separated(expression, end, trailing_comma=True), pairs

    def pair(p: Cursor) -> None:
        key = p.name("a key")
        if key.text in pairs:
            raise CompileError(f"key {key.text!r} is given twice", key.span)
        p.expect("=")
        pairs[key.text] = expression(p)

    p.separated(pair, end, trailing_comma=True)
    return [], pairs


def _unstructured_body(p: Cursor, annotation: ast.Annotation, end: str) -> None:
    """Parse any tokens with balanced parentheses; also as expressions or pairs if they are such."""
    start = p.position
    if parsed := p.attempt(lambda p: _structured_body(p, end)):
        annotation.expressions, annotation.pairs = parsed
    else:
        _skip_balanced(p, end)
    annotation.text = " ".join(token.text for token in p.tokens[start : p.position - 1])


def _skip_balanced(p: Cursor, end: str) -> None:
    depth = 0
    while depth or p.kind != end:
        if p.kind == END:
            p.fail("this annotation does not end: expected ')'")
        depth += {"(": 1, ")": -1}.get(p.kind, 0)
        p.advance()
    p.advance()
