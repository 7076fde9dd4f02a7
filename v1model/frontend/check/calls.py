"""Calls of functions, methods, actions, constructors, apply and built-in methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check import builtins, core_library, resolve
from v1model.frontend.check.arguments import Site, bind
from v1model.frontend.check.constants import is_compile_time
from v1model.frontend.check.members import no_member
from v1model.frontend.check.rules import check, checks
from v1model.frontend.check.scope import APPLICABLE, CALLABLE
from v1model.frontend.check.show import show
from v1model.frontend.check.signatures import Signature, of_function, select_overload
from v1model.frontend.types import (
    BoolType,
    DeclaredType,
    EnumType,
    RecordType,
    Type,
    VoidType,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context


@checks(ast.Call)
def _call(c: Context, node: ast.Call, hint: Type | None) -> ast.Expression:
    """Check a call, and fill in its kind, declaration, ordered arguments and type arguments."""
    callee = node.callee
    if isinstance(callee, ast.TypeName):
        return _constructor_call(c, node, callee)
    if isinstance(callee, ast.Member):
        return _member_call(c, node, callee, hint)
    if isinstance(callee, ast.Name):
        return _name_call(c, node, callee, hint)
    raise CompileError("this cannot be called", node.span)


def _finish(
    c: Context, node: ast.Call, kind: str, signature: Signature, hint: Type | None = None
) -> ast.Call:
    """Bind the arguments, and fill in what is known of the call."""
    node.kind, node.declaration = kind, signature.declaration
    bound = bind(c, signature, Site(node.span, node.arguments, node.type_arguments, hint))
    node.arguments, node.inferred, node.type = bound.arguments, bound.type_arguments, bound.result
    return node


# --- functions and actions ---------------------------------------------------------------


def _name_call(c: Context, node: ast.Call, callee: ast.Name, hint: Type | None) -> ast.Expression:
    symbol = c.lookup(callee.name, callee.span, absolute=callee.absolute, kinds=CALLABLE)
    if isinstance(symbol, ast.ActionDeclaration):
        return _action_call(c, node, callee, symbol)
    if not isinstance(symbol, list):
        raise CompileError(f"{callee.name!r} cannot be called", callee.span)
    signature = select_overload([of_function(function) for function in symbol], node, node.arguments)
    callee.declaration = signature.declaration
    assert isinstance(signature.declaration, ast.FunctionDeclaration)
    callee.type = DeclaredType(signature.declaration)
    if signature.declaration.body is not None:
        return _finish(c, node, "function", signature, hint)
    _finish(c, node, "extern_function", signature, hint)
    core_library.check_function_call(c, node, callee.name)
    return node


def _action_call(c: Context, node: ast.Call, callee: ast.Name, action: ast.ActionDeclaration) -> ast.Call:
    if c.place not in ("apply", "action"):
        raise CompileError("an action can be called only in a control or an action", node.span)
    callee.declaration, callee.type = action, DeclaredType(action)
    signature = Signature(action.name, action.parameters, VoidType(), declaration=action)
    return _finish(c, node, "action", signature)


# --- methods -----------------------------------------------------------------------------


def _member_call(c: Context, node: ast.Call, callee: ast.Member, hint: Type | None) -> ast.Expression:
    if isinstance(callee.base, ast.TypeName):
        return _type_member_call(c, node, callee, callee.base)
    if callee.member == "apply" and isinstance(callee.base, ast.Name) and callee.base.name != "this":
        name = callee.base
        if isinstance(c.find_later(name.name), ast.TableDeclaration):
            _require_apply_block(c, node)
        c.lookup(name.name, name.span, absolute=name.absolute, kinds=APPLICABLE)
    callee.base = check(c, callee.base)
    base = callee.base.type
    if isinstance(base, DeclaredType):
        if isinstance(base.declaration, ast.ExternDeclaration):
            return _method_call(c, node, callee, base, hint)
        if callee.member == "apply" and isinstance(callee.base, ast.Name):
            return _apply_call(c, node, base)
        raise no_member(callee, ["apply"])
    return builtins.check_builtin(c, node, callee)


def _type_member_call(c: Context, node: ast.Call, callee: ast.Member, base: ast.TypeName) -> ast.Expression:
    """Check `T.apply()` of a parser or control without an instance, or `H.minSizeInBits()`."""
    base.type = resolve.complete(c, base.ref)
    if isinstance(base.type, DeclaredType) and callee.member == "apply":
        if getattr(base.type.declaration, "constructor_parameters", []):
            raise CompileError(f"{show(base.type)} has constructor parameters: instantiate it", node.span)
        return _apply_call(c, node, base.type)
    return builtins.check_builtin(c, node, callee)


def _method_call(
    c: Context, node: ast.Call, callee: ast.Member, base: DeclaredType, hint: Type | None
) -> ast.Call:
    extern = base.declaration
    assert isinstance(extern, ast.ExternDeclaration)
    methods = [method for method in extern.methods if method.name == callee.member and method.return_type]
    if not methods:
        raise no_member(callee, [method.name for method in extern.methods if method.return_type])
    outer = dict(zip(extern.type_parameters, base.arguments, strict=False))
    signature = select_overload([of_function(method, outer) for method in methods], node, node.arguments)
    assert signature.declaration is not None
    callee.type = DeclaredType(signature.declaration)
    _finish(c, node, "extern_method", signature, hint)
    core_library.check_method_call(node, extern.name, callee.member)
    return node


def _apply_call(c: Context, node: ast.Call, base: DeclaredType) -> ast.Call:
    declaration = base.declaration
    result: Type = VoidType()
    match declaration:
        case ast.TableDeclaration():
            _require_apply_block(c, node)
            parameters: list[ast.Parameter] = []
            result = apply_result(c, declaration)
        case ast.ControlDeclaration():
            if c.place != "apply":
                raise CompileError("a control can be applied only in the apply block of a control", node.span)
            parameters = declaration.parameters
        case ast.ParserDeclaration():
            if c.place != "state":
                raise CompileError("a parser can be applied only in a state of a parser", node.span)
            parameters = declaration.parameters
        case _:
            raise CompileError(f"{show(base)} cannot be applied", node.span)
    return _finish(c, node, "apply", Signature("apply", parameters, result, declaration=declaration))


def _require_apply_block(c: Context, node: ast.Call) -> None:
    if c.place not in ("apply", "table"):
        place = _PLACES.get(c.place, "no control")
        hint = f"this is {place}; apply the table before or after it, in apply {{ ... }}"
        raise CompileError("a table can be applied only in the apply block of a control", node.span, hint)


_PLACES = {"action": "an action", "function": "a function", "state": "a state of a parser"}


def apply_result(c: Context, table: ast.TableDeclaration) -> RecordType:
    """Return the struct that applying a table yields: hit, miss, and action_run, an enum of its actions."""
    if (found := c.nominal.get(table)) is None:
        names = [reference.name.name for reference in table.actions]
        enum = ast.EnumDeclaration(table.span, f"action_list({table.name})", dict.fromkeys(names))
        members = tuple((name, position) for position, name in enumerate(enum.members))
        fields: tuple[tuple[str, Type], ...] = (
            ("hit", BoolType()),
            ("miss", BoolType()),
            ("action_run", EnumType(enum.name, members, None, enum)),
        )
        struct = ast.StructDeclaration(table.span, f"apply_result({table.name})", "struct", [])
        found = c.nominal[table] = RecordType("struct", struct.name, fields, struct)
    assert isinstance(found, RecordType)
    return found


# --- constructors ------------------------------------------------------------------------


def _constructor_call(c: Context, node: ast.Call, callee: ast.TypeName) -> ast.Call:
    node.arguments, found = construct(c, callee.ref, node, node.arguments)
    callee.type = node.type = found
    node.kind, node.declaration, node.inferred = "constructor", found.declaration, found.arguments
    return node


def construct(
    c: Context, ref: ast.TypeRef, node: ast.Node, arguments: list[ast.Argument]
) -> tuple[list[ast.Argument], DeclaredType]:
    """Check an instance's arguments; returns them in order, with the instance's complete type."""
    found = resolve.resolve(c, ref)
    if not isinstance(found, DeclaredType):
        raise CompileError(f"{show(found)} cannot be instantiated", ref.span)
    signature = select_overload(_constructors(found, ref), node, arguments)
    written = ref.arguments if isinstance(ref, ast.NamedTypeRef) else []
    written = [] if signature.outer else written
    bound = bind(c, signature, Site(node.span, arguments, written, allow_unknown=bool(written)))
    inferred = bound.type_arguments or found.arguments
    for argument in bound.arguments:
        if argument.value is not None and not is_compile_time(argument.value):
            raise CompileError("the arguments of a constructor must be known at compile time", argument.span)
    ref.resolved = complete = DeclaredType(found.declaration, inferred)
    return bound.arguments, complete


def _constructors(found: DeclaredType, ref: ast.TypeRef) -> list[Signature]:
    declaration = found.declaration
    match declaration:
        case ast.ExternDeclaration():
            groups = [method.parameters for method in declaration.methods if method.return_type is None]
            if not groups:
                raise CompileError(f"extern {declaration.name!r} has no constructor", ref.span)
        case ast.ParserDeclaration(states=None) | ast.ControlDeclaration(body=None):
            raise CompileError(f"{show(found)} is only a type and cannot be instantiated", ref.span)
        case ast.ParserDeclaration() | ast.ControlDeclaration():
            groups = [declaration.constructor_parameters]
        case ast.PackageDeclaration():
            groups = [declaration.parameters]
        case _:
            raise CompileError(f"{show(found)} cannot be instantiated", ref.span)
    # A typedef may have given the type arguments already.
    is_specialised = bool(found.arguments) and not (isinstance(ref, ast.NamedTypeRef) and ref.arguments)
    names = declaration.type_parameters
    outer = dict(zip(names, found.arguments, strict=True)) if is_specialised else {}
    return [
        Signature(declaration.name, parameters, VoidType(), [] if outer else names, outer, declaration)
        for parameters in groups
    ]
