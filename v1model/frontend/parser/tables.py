"""Tables: keys, actions, entries and other properties."""

from __future__ import annotations

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import INTEGER
from v1model.frontend.parser.annotations import annotation_list
from v1model.frontend.parser.cursor import Cursor, join
from v1model.frontend.parser.expressions import argument_list, expression, integer_literal, keyset


def table_declaration(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.TableDeclaration:
    """Parse `table name "{" {property} "}"`."""
    p.expect("table")
    name = p.name("the name of a table")
    found = ast.TableDeclaration(name.span, name.text, [], [], annotations=found_annotations)
    given: set[str] = set()
    p.braced(lambda p: _property(p, found, given))
    p.declare(name.text)
    if "actions" not in given:
        hint = "list them: actions = { ... }"
        p.diagnostics.add(CompileError(f"table {name.text!r} has no actions", name.span, hint))
    return found


def _property(p: Cursor, table: ast.TableDeclaration, given: set[str]) -> None:
    """Parse `[const] name "=" value`."""
    annotations = annotation_list(p)
    is_const = p.accept("const")
    name = p.name("a table property")
    if name.text in given:
        raise CompileError(f"table property {name.text!r} is given twice", name.span)
    given.add(name.text)
    p.expect("=")
    match name.text:
        case "key":
            table.keys = p.braced(_key_element)
        case "actions":
            table.actions = p.braced(_action_reference)
        case "entries":
            entries = p.braced(_entry)
            if entries and "key" not in given:
                hint = "a table without a key has none: it always does its default_action"
                raise CompileError("the entries of a table must stand behind its key", name.span, hint)
            table.entries_const, table.entries = is_const, entries
        case "default_action":
            table.default_action_const, table.default_action = is_const, _default_action(p)
        case _:
            table.properties[name.text] = ast.TableProperty(
                name.span, name.text, expression(p), is_const, annotations
            )
    if name.text not in ("key", "actions", "entries"):
        p.expect(";", "after the table property")


def _key_element(p: Cursor) -> ast.KeyElement:
    """Parse `expression ":" matchKind {annotation} ";"`."""
    key = expression(p)
    p.expect(":", "and a match kind")
    kind = p.name("a match kind")
    found = ast.KeyElement(key.span, key, kind.text, annotation_list(p))
    p.expect(";", "after the key")
    return found


def _action_reference(p: Cursor) -> ast.ActionReference:
    """Parse `{annotation} name ["(" arguments ")"] ";"`."""
    found_annotations = annotation_list(p)
    name = _action_name(p)
    arguments = argument_list(p) if p.kind == "(" else []
    p.expect(";", "after the action")
    return ast.ActionReference(name.span, name, arguments, found_annotations)


def _action_name(p: Cursor) -> ast.Name:
    start, absolute = p.span, p.accept(".")
    name = p.name("the name of an action")
    return ast.Name(join(start, name.span), name.text, absolute)


def _action_call(p: Cursor) -> ast.Call:
    name = _action_name(p)
    return ast.Call(name.span, name, argument_list(p) if p.kind == "(" else [])


def _default_action(p: Cursor) -> ast.Call:
    return _action_call(p)


def _entry(p: Cursor) -> ast.Entry:
    """Parse `[const] [priority "=" value ":"] keys ":" action {annotation} ";"`."""
    start, is_const = p.span, p.accept("const")
    priority = _priority(p)
    keys = keyset(p)
    p.expect(":", "and the entry's action")
    action = _action_call(p)
    found = ast.Entry(p.span_from(start), keys, action, priority, is_const, annotation_list(p))
    p.expect(";", "after the entry")
    return found


def _priority(p: Cursor) -> ast.Expression | None:
    if p.kind != "priority" or p.peek().kind != "=":
        return None
    p.advance()
    p.advance()
    if p.kind == INTEGER:
        found: ast.Expression = integer_literal(p.advance())
    else:
        p.expect("(")
        found = expression(p)
        p.expect(")")
    p.expect(":", "after the priority")
    return found
