"""Declarations of a program, in order: every name is declared before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check import (
    calls,
    expressions,
    functions,
    instances,
    parsers,
    tables,
    type_declarations,
    values,
)
from v1model.frontend.check.scope import Context
from v1model.frontend.check.statements import check_block

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from v1model.diagnostics import Diagnostics

# Importing these modules registers their rules (rules.py).
RULES: tuple[ModuleType, ...] = (calls, expressions)


def check_program(program: ast.Program, diagnostics: Diagnostics) -> Context:
    """Fill in types, declarations and values of all nodes; returns what is known of the whole program.

    Errors are added to `diagnostics`.
    """
    c = Context.empty(diagnostics)
    with c.declaring(program.declarations):
        for declaration in program.declarations:
            with diagnostics.recovering(declaration.name):
                check_declaration(c, declaration)
    return c


def check_declaration(c: Context, node: ast.Declaration) -> None:
    _RULES[type(node)](c, node)


def _control(c: Context, node: ast.ControlDeclaration) -> None:
    """Check a control type, or a control."""
    with c.inside("control"):
        c.declare_type_variables(node.type_parameters, node.span)
        values.check_parameters(c, node.parameters)
        values.refuse_block_parameters(node.parameters)
        if node.body is not None:
            _control_body(c, node, node.body)
    values.check_annotations(c, node.annotations)
    c.declare(node)


def _control_body(c: Context, node: ast.ControlDeclaration, body: ast.Block) -> None:
    if node.type_parameters:
        raise UnsupportedError(f"control {node.name!r} has a body and so cannot be generic", node.span)
    values.require_constructor_parameters(node.constructor_parameters, "constructor")
    values.check_parameters(c, node.constructor_parameters)
    with c.nested(), c.declaring(node.locals):
        for declaration in node.locals:
            with c.diagnostics.recovering(declaration.name):
                check_declaration(c, declaration)
        with c.inside("apply"):
            check_block(c, body)


def _package(c: Context, node: ast.PackageDeclaration) -> None:
    with c.nested():
        c.declare_type_variables(node.type_parameters, node.span)
        values.require_constructor_parameters(node.parameters, "package")
        values.check_parameters(c, node.parameters)
    values.check_annotations(c, node.annotations)
    c.declare(node)


_RULES: dict[type[ast.Declaration], Callable[[Context, Any], None]] = {
    ast.ConstantDeclaration: values.check_constant_declaration,
    ast.VariableDeclaration: values.check_variable,
    ast.Instantiation: instances.check_instantiation,
    ast.FunctionDeclaration: functions.check_function,
    ast.ActionDeclaration: functions.check_action,
    ast.ExternDeclaration: functions.check_extern,
    ast.ParserDeclaration: parsers.check_parser,
    ast.ControlDeclaration: _control,
    ast.PackageDeclaration: _package,
    ast.TableDeclaration: tables.check_table,
    ast.StructDeclaration: type_declarations.check_struct,
    ast.EnumDeclaration: type_declarations.check_enum,
    ast.ErrorDeclaration: type_declarations.check_error,
    ast.MatchKindDeclaration: type_declarations.check_match_kind,
    ast.TypedefDeclaration: type_declarations.check_typedef,
}
