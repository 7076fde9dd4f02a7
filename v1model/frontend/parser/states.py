"""Parser states and their transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.parser.expressions import expression, keyset
from v1model.frontend.parser.statements import statement_or_declaration

if TYPE_CHECKING:
    from v1model.frontend.parser.cursor import Cursor


def parser_state(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.StateDeclaration:
    """Parse `state name "{" {statement} [transition] "}"`."""
    p.expect("state")
    name = p.name("the name of a state")
    statements: list[ast.Statement] = []
    transition: ast.Select | None = None
    p.expect("{")
    with p.scope():
        while p.kind not in ("transition", "}"):
            with p.recovering_item():
                statements.append(statement_or_declaration(p))
        if p.kind == "transition":
            transition = _transition(p)
    p.expect("}", "after the transition")
    return ast.StateDeclaration(name.span, name.text, statements, transition, annotations=found_annotations)


def _transition(p: Cursor) -> ast.Select:
    """Parse `transition (name ";" | select)`."""
    start = p.expect("transition").span
    if p.kind == "select":
        return _select_expression(p)
    state = p.name("a state or 'select'")
    p.expect(";", "after the transition")
    return ast.Select(start, [], [ast.SelectCase(state.span, [], state.text)])


def _select_expression(p: Cursor) -> ast.Select:
    """Parse `select "(" expressions ")" "{" {keyset ":" name ";"} "}"`."""
    start = p.expect("select").span
    p.expect("(")
    subjects = p.separated(expression, ")")
    return ast.Select(start, subjects, p.braced(_select_case))


def _select_case(p: Cursor) -> ast.SelectCase:
    start = p.span
    keys = keyset(p)
    p.expect(":", "after the keys of the case")
    state = p.name("a state")
    p.expect(";", "after the case")
    return ast.SelectCase(p.span_from(start), keys, state.text)
