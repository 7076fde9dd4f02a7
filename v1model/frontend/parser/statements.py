"""Statements, and declarations between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.dialects import HINTS, statement_hint
from v1model.frontend.lexer import IDENTIFIER, RIGHT_SHIFT_HALF
from v1model.frontend.parser import types
from v1model.frontend.parser.annotations import annotation_list
from v1model.frontend.parser.cursor import Cursor, join
from v1model.frontend.parser.expressions import argument_list, expression, postfix

if TYPE_CHECKING:
    from collections.abc import Callable

COMPOUND_OPERATORS = frozenset({"*=", "/=", "%=", "+=", "-=", "|+|=", "|-|=", "<<=", "&=", "|=", "^="})


def block(p: Cursor, found_annotations: list[ast.Annotation] | None = None) -> ast.Block:
    """Parse `{annotation} "{" {statementOrDeclaration} "}"`, in a scope of its own."""
    before = annotation_list(p) if found_annotations is None else found_annotations
    start = p.span
    with p.scope():
        return ast.Block(start, p.braced(statement_or_declaration), before)


def statement_or_declaration(p: Cursor) -> ast.Statement:
    found_annotations = annotation_list(p)
    if p.kind == "const":
        return _declared(constant_declaration(p, found_annotations))
    if types.at_type(p) and (declaration := _declaration(p, found_annotations)):
        return _declared(declaration)
    return statement(p, found_annotations)


def statement(p: Cursor, found_annotations: list[ast.Annotation] | None = None) -> ast.Statement:
    before = annotation_list(p) if found_annotations is None else found_annotations
    if p.kind == "{":
        return block(p, before)
    if rule := _STATEMENTS.get(p.kind):
        return rule(p)
    found = assignment_or_call(p)
    p.expect(";", "after the statement")
    return found


def assignment_or_call(p: Cursor) -> ast.Statement:
    """Parse `lvalue operator expression | call`, without the semicolon."""
    target = postfix(p)
    if (operator := _assignment_operator(p)) is not None:
        value = expression(p)
        return ast.Assignment(join(target.span, value.span), target, value, operator)
    if isinstance(target, ast.Call) and isinstance(target.callee, ast.Name) and p.kind == "{":
        word = target.callee.name
        raise CompileError(f"{word!r} begins no statement", target.span, HINTS.get(word, ""))
    if isinstance(target, ast.Name) and p.kind in (IDENTIFIER, "int", "bit"):
        hint = HINTS.get(target.name, "a type must be declared before it is used")
        raise CompileError(
            f"{target.name!r} is no type that is declared", target.span, hint, missing=target.name
        )
    if not isinstance(target, ast.Call):
        p.fail("expected '=' or a call", statement_hint(p.token, p.peek()))
    return ast.CallStatement(target.span, target)


def _assignment_operator(p: Cursor) -> str | None:
    """Consume an assignment operator and return the part before `=`, "" for a plain one, or None."""
    if p.kind == RIGHT_SHIFT_HALF and p.peek().kind == ">=":
        p.advance()
        p.advance()
        return ">>"
    if p.kind == "=" or p.kind in COMPOUND_OPERATORS:
        return p.advance().kind[:-1]
    return None


def _declared(declaration: ast.Declaration) -> ast.DeclarationStatement:
    return ast.DeclarationStatement(declaration.span, declaration)


# --- declarations ------------------------------------------------------------------------


def constant_declaration(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.ConstantDeclaration:
    """Parse `const typeRef name = expression ;`."""
    p.expect("const")
    type_ref = types.type_ref(p)
    name = p.name("the name of the constant")
    type_ref = types.array_type(p, type_ref)
    p.expect("=", "and the value of the constant")
    value = expression(p)
    p.expect(";")
    p.declare(name.text)
    return ast.ConstantDeclaration(name.span, name.text, type_ref, value, annotations=found_annotations)


def _declaration(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.Declaration | None:
    """Parse a variable or an instantiation; None, nothing consumed, if a call such as `T.apply()` is next."""
    start = p.position
    type_ref = types.type_ref(p)
    if p.kind == ".":
        p.position, p.kind = start, p.tokens[start].kind
        return None
    if p.kind == "(":
        return instantiation(p, type_ref, found_annotations)
    found = variable(p, type_ref, found_annotations)
    p.expect(";", "after the declaration")
    return found


def variable_or_instantiation(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.Declaration:
    """Parse a local of a parser or control, where no statement is allowed."""
    declaration = _declaration(p, found_annotations) if types.at_type(p) else None
    if declaration is None:
        p.fail("expected a declaration", "statements stand in the apply block or in a state")
    return declaration


def variable(
    p: Cursor, type_ref: ast.TypeRef, found_annotations: list[ast.Annotation]
) -> ast.VariableDeclaration:
    """Parse `name ["[" size "]"] ["=" expression]`."""
    name = p.name("the name of a variable")
    type_ref = types.array_type(p, type_ref)
    value = expression(p) if p.accept("=") else None
    p.declare(name.text)
    return ast.VariableDeclaration(name.span, name.text, type_ref, value, annotations=found_annotations)


def instantiation(
    p: Cursor, type_ref: ast.TypeRef, found_annotations: list[ast.Annotation]
) -> ast.Instantiation:
    """Parse `(arguments) name ["=" "{" members "}"] ;`, after the type."""
    arguments = argument_list(p)
    name = p.name("the name of the instance")
    found = ast.Instantiation(name.span, name.text, type_ref, arguments, annotations=found_annotations)
    if p.accept("="):
        with p.scope():
            found.members = p.braced(_object_member)
    p.expect(";", "after the instantiation")
    p.declare(name.text)
    return found


def _object_member(p: Cursor) -> ast.Declaration:
    """Parse a function that implements an abstract method, or an instance."""
    found_annotations = annotation_list(p)
    start = p.position
    type_ref = types.type_or_void(p)
    if p.kind == "(":
        return instantiation(p, type_ref, found_annotations)
    p.position, p.kind = start, p.tokens[start].kind
    return function_declaration(p, found_annotations)


def function_declaration(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.FunctionDeclaration:
    """Parse `functionPrototype block`."""
    with p.scope():
        found = function_prototype(p, found_annotations)
        found.body = block(p)
    p.declare(found.name)
    return found


def function_prototype(p: Cursor, found_annotations: list[ast.Annotation]) -> ast.FunctionDeclaration:
    """Parse `typeOrVoid name [typeParameters] (parameters)`, in a scope that the caller opened."""
    return_type = types.type_or_void(p)
    name = p.name("the name of a function")
    type_parameters = types.type_parameters(p)
    return ast.FunctionDeclaration(
        name.span,
        name.text,
        return_type,
        parameter_list(p),
        type_parameters=type_parameters,
        annotations=found_annotations,
    )


def parameter_list(p: Cursor) -> list[ast.Parameter]:
    """Parse `"(" [parameter {"," parameter}] ")"`, and declare the names."""
    p.expect("(")
    found = p.separated(_parameter, ")")
    for parameter in found:
        p.declare(parameter.name)
    return found


def _parameter(p: Cursor) -> ast.Parameter:
    found_annotations = annotation_list(p)
    direction = p.advance().kind if p.kind in ("in", "out", "inout") else ""
    type_ref = types.type_or_void(p)
    name = p.name("the name of a parameter")
    type_ref = types.array_type(p, type_ref)
    default = expression(p) if p.accept("=") else None
    return ast.Parameter(name.span, name.text, direction, type_ref, default, annotations=found_annotations)


# --- control flow ------------------------------------------------------------------------


def _if_statement(p: Cursor) -> ast.Statement:
    start = p.expect("if").span
    p.expect("(")
    condition = expression(p)
    if p.kind == "=":
        raise CompileError("'=' assigns, and a condition cannot", p.span, "'==' compares")
    p.expect(")")
    then = statement(p)
    otherwise = statement(p) if p.accept("else") else None
    return ast.If(start, condition, then, otherwise)


def _switch_statement(p: Cursor) -> ast.Statement:
    start = p.expect("switch").span
    p.expect("(")
    subject = expression(p)
    p.expect(")")
    return ast.Switch(start, subject, p.braced(_switch_case))


def _switch_case(p: Cursor) -> ast.SwitchCase:
    start = p.span
    label = ast.DefaultExpression(p.advance().span) if p.kind == "default" else expression(p)
    p.expect(":", "after the label of the case")
    body = block(p) if p.kind == "{" else None
    return ast.SwitchCase(start, [label], body)


def _for_statement(p: Cursor) -> ast.Statement:
    start = p.expect("for").span
    p.expect("(")
    with p.scope():
        found_annotations = annotation_list(p)
        if types.at_type(p) and (loop := p.attempt(lambda p: _for_in_head(p, found_annotations))):
            variable, collection = loop
            return ast.ForIn(start, variable, collection, statement(p))
        initial = p.separated(_for_initialiser, ";")
        condition = expression(p)
        p.expect(";")
        update = p.separated(assignment_or_call, ")")
        return ast.For(start, initial, condition, update, statement(p))


def _for_in_head(
    p: Cursor, found_annotations: list[ast.Annotation]
) -> tuple[ast.VariableDeclaration, ast.Expression]:
    """Parse `typeRef name in collection ")"`."""
    type_ref = types.type_ref(p)
    name = p.name("the name of the loop variable")
    p.expect("in")
    collection = expression(p)
    if p.accept(".."):
        high = expression(p)
        collection = ast.Binary(join(collection.span, high.span), "..", collection, high)
    p.expect(")")
    p.declare(name.text)
    declaration = ast.VariableDeclaration(name.span, name.text, type_ref, annotations=found_annotations)
    return declaration, collection


def _for_initialiser(p: Cursor) -> ast.Statement:
    found_annotations = annotation_list(p)
    if types.at_type(p):
        return _declared(variable(p, types.type_ref(p), found_annotations))
    return assignment_or_call(p)


def _return_statement(p: Cursor) -> ast.Statement:
    start = p.expect("return").span
    value = None if p.kind == ";" else expression(p)
    p.expect(";", "after 'return'")
    return ast.Return(start, value)


def _jump(p: Cursor) -> ast.Statement:
    token = p.advance()
    p.expect(";", f"after '{token.text}'")
    return {"exit": ast.Exit, "break": ast.Break, "continue": ast.Continue}[token.kind](token.span)


def _empty_statement(p: Cursor) -> ast.Statement:
    return ast.Empty(p.expect(";").span)


def _misplaced_else(p: Cursor) -> ast.Statement:
    raise CompileError("'else' without an 'if' before it", p.span)


_STATEMENTS: dict[str, Callable[[Cursor], ast.Statement]] = {
    "if": _if_statement,
    "else": _misplaced_else,
    "switch": _switch_statement,
    "for": _for_statement,
    "return": _return_statement,
    "exit": _jump,
    "break": _jump,
    "continue": _jump,
    ";": _empty_statement,
}
