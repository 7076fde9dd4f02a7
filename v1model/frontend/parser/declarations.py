"""Declarations of a program, from `program` down to the locals of parsers and controls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.dialects import HINTS
from v1model.frontend.lexer import END, IDENTIFIER, Token
from v1model.frontend.parser import types
from v1model.frontend.parser.annotations import annotation_list
from v1model.frontend.parser.expressions import expression
from v1model.frontend.parser.statements import (
    block,
    constant_declaration,
    function_declaration,
    function_prototype,
    instantiation,
    parameter_list,
    variable_or_instantiation,
)
from v1model.frontend.parser.states import parser_state
from v1model.frontend.parser.tables import table_declaration
from v1model.frontend.parser.type_declarations import TYPE_DECLARATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.frontend.parser.cursor import Cursor

Annotations = list[ast.Annotation]


def program(p: Cursor) -> ast.Program:
    """Parse `{declaration | ";"}`."""
    start = p.span
    found: list[ast.Declaration] = []
    while p.kind != END:
        position = p.position
        try:
            if not p.accept(";") and (declared := declaration(p)):
                found += [*p.hoisted, declared]
        except CompileError as error:
            p.diagnostics.add(error)
            p.skip_declaration(position)
        p.hoisted.clear()
    return ast.Program(start, found)


def declaration(p: Cursor) -> ast.Declaration | None:
    """Return the declaration, or None for an extern that is only announced."""
    found_annotations = annotation_list(p)
    if p.kind == "extern":
        return _extern_declaration(p, found_annotations)
    if rule := _DECLARATIONS.get(p.kind):
        return rule(p, found_annotations)
    return _instantiation_or_function(p, found_annotations)


def _instantiation_or_function(p: Cursor, found_annotations: Annotations) -> ast.Declaration:
    """Parse `typeRef (arguments) name ;` or `typeOrVoid name (parameters) block`."""
    start = p.position
    if types.at_type(p):
        type_ref = types.type_ref(p)
        if p.kind == "(":
            return instantiation(p, type_ref, found_annotations)
        p.position, p.kind = start, p.tokens[start].kind
    elif p.kind not in ("void", IDENTIFIER):
        p.fail("expected a declaration")
    elif p.kind == IDENTIFIER and p.peek().kind == "(":
        hint = HINTS.get(p.token.text, "a type must be declared before it is used")
        p.fail("expected a declared type", hint, missing=p.token.text)
    return function_declaration(p, found_annotations)


# --- externs -----------------------------------------------------------------------------


def _extern_declaration(p: Cursor, found_annotations: Annotations) -> ast.Declaration | None:
    """Parse an extern function, an extern object, or `extern name ;`, which only announces one."""
    p.expect("extern")
    if p.at_name() and p.peek().kind in ("{", "<", ";") and not _at_generic_return_type(p):
        return _extern_object(p, found_annotations)
    with p.scope():
        function = function_prototype(p, found_annotations)
    p.expect(";", "after the extern function")
    p.declare(function.name)
    return function


def _at_generic_return_type(p: Cursor) -> bool:
    """Return whether `name<` is a function's return type rather than an extern with type parameters."""
    return p.is_type(p.token.text) and p.peek().kind == "<" and not _at_extern_again(p)


def _at_extern_again(p: Cursor) -> bool:
    distance = 2
    while p.peek(distance).kind in (IDENTIFIER, ","):
        distance += 1
    return p.peek(distance).kind == ">" and p.peek(distance + 1).kind in ("{", ";")


def _extern_object(p: Cursor, found_annotations: Annotations) -> ast.ExternDeclaration | None:
    name = p.name("the name of an extern")
    p.declare(name.text, is_type=True)
    with p.scope():
        type_parameters = types.type_parameters(p)
        if p.accept(";"):
            return None
        methods = p.braced(lambda p: _method_prototype(p, name.text))
    return ast.ExternDeclaration(
        name.span, name.text, methods, type_parameters, annotations=found_annotations
    )


def _method_prototype(p: Cursor, extern_name: str) -> ast.FunctionDeclaration:
    """Parse a method, or a constructor, which has the extern's name and no return type."""
    found_annotations = annotation_list(p)
    is_abstract = p.accept("abstract")
    with p.scope():
        if p.kind == IDENTIFIER and p.token.text == extern_name and p.peek().kind == "(":
            name = p.advance()
            method = ast.FunctionDeclaration(name.span, name.text, None, parameter_list(p))
            method.annotations = found_annotations
        else:
            method = function_prototype(p, found_annotations)
    method.is_abstract = is_abstract
    p.expect(";", "after the method")
    return method


# --- parsers, controls, packages ---------------------------------------------------------


def _parser_declaration(p: Cursor, found_annotations: Annotations) -> ast.Declaration:
    """Parse a parser type, or a parser with its locals and states."""
    p.expect("parser")
    name = _container_name(p, "parser")
    with p.scope():
        found = ast.ParserDeclaration(name.span, name.text, [], annotations=found_annotations)
        found.type_parameters, found.parameters = types.type_parameters(p), parameter_list(p)
        if p.accept(";"):
            return found
        found.constructor_parameters = parameter_list(p) if p.kind == "(" else []
        p.expect("{")
        found.states = []
        while not p.accept("}"):
            with p.recovering_item():
                _parser_element(p, found, found.states)
    return found


def _parser_element(p: Cursor, parser: ast.ParserDeclaration, states: list[ast.StateDeclaration]) -> None:
    """Parse a local or a state; locals come first."""
    found_annotations = annotation_list(p)
    if p.kind == "state":
        states.append(parser_state(p, found_annotations))
    elif states:
        p.fail("expected 'state' or '}'", "the locals of a parser stand before its states")
    elif p.kind == "value_set":
        parser.locals.append(_value_set_declaration(p, found_annotations))
    else:
        parser.locals.append(_local(p, found_annotations))


def _value_set_declaration(p: Cursor, found_annotations: Annotations) -> ast.ValueSetDeclaration:
    """Parse `value_set<T>(size) name ;`."""
    p.expect("value_set")
    p.expect("<")
    type_ref = types.type_ref(p)
    p.expect_close_angle()
    p.expect("(")
    size = expression(p)
    p.expect(")")
    name = p.name("the name of the value set")
    p.expect(";")
    p.declare(name.text)
    return ast.ValueSetDeclaration(name.span, name.text, type_ref, size, annotations=found_annotations)


def _control_declaration(p: Cursor, found_annotations: Annotations) -> ast.Declaration:
    """Parse a control type, or a control with its locals and apply block."""
    p.expect("control")
    name = _container_name(p, "control")
    with p.scope():
        found = ast.ControlDeclaration(name.span, name.text, [], annotations=found_annotations)
        found.type_parameters, found.parameters = types.type_parameters(p), parameter_list(p)
        if p.accept(";"):
            return found
        found.constructor_parameters = parameter_list(p) if p.kind == "(" else []
        p.expect("{")
        while p.kind != "apply":
            if p.kind == "}":
                p.fail("expected the 'apply' block of the control")
            with p.recovering_item():
                found.locals.append(_local(p, annotation_list(p)))
        p.advance()
        found.body = block(p)
        p.expect("}", "after the apply block")
    return found


def _local(p: Cursor, found_annotations: Annotations) -> ast.Declaration:
    if p.kind == "const":
        return constant_declaration(p, found_annotations)
    if p.kind == "action":
        return _action_declaration(p, found_annotations)
    if p.kind == "table":
        return table_declaration(p, found_annotations)
    return variable_or_instantiation(p, found_annotations)


def _action_declaration(p: Cursor, found_annotations: Annotations) -> ast.ActionDeclaration:
    """Parse `action name (parameters) block`."""
    p.expect("action")
    name = p.name("the name of an action")
    p.declare(name.text)
    with p.scope():
        parameters = parameter_list(p)
        return ast.ActionDeclaration(
            name.span, name.text, parameters, block(p), annotations=found_annotations
        )


def _package_declaration(p: Cursor, found_annotations: Annotations) -> ast.Declaration:
    """Parse `package name [typeParameters] (parameters) ;`."""
    p.expect("package")
    name = _container_name(p, "package")
    with p.scope():
        type_parameters = types.type_parameters(p)
        parameters = parameter_list(p)
    p.expect(";", "after the package")
    return ast.PackageDeclaration(
        name.span, name.text, parameters, type_parameters, annotations=found_annotations
    )


def _container_name(p: Cursor, what: str) -> Token:
    """Parse the name of a type that is declared here."""
    name = p.name(f"the name of a {what}")
    p.declare(name.text, is_type=True)
    return name


_DECLARATIONS: dict[str, Callable[[Cursor, Annotations], ast.Declaration]] = {
    "const": constant_declaration,
    "action": _action_declaration,
    "parser": _parser_declaration,
    "control": _control_declaration,
    "package": _package_declaration,
    **TYPE_DECLARATIONS,
}
