"""Instantiation: controls, parsers and externs with their constructor arguments and control-plane names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from v1model.errors import UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend import custom_externs, extern_objects, value_sets
from v1model.midend.scope import (
    ActionClosure,
    Binding,
    ControlInstance,
    ParserInstance,
    Scope,
    TableInstance,
    plane_name,
)
from v1model.midend.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.midend.frame import Frame


def construct(frame: Frame, node: ast.Expression, path: str) -> Binding:
    """Return the value of a constructor's argument: an instance made or named there, or a constant."""
    if isinstance(node, ast.Call) and node.kind == "constructor":
        assert isinstance(node.type, t.DeclaredType), node
        declared = node.type.declaration
        return instantiate(frame, node.type, node.arguments, _inside(path, declared.name), node)
    if isinstance(node, ast.Name) and node.declaration is not None:
        return frame.find(node.declaration)
    return frame.expression(node)


def _inside(path: str, name: str) -> str:
    """Return the control-plane name of an instance without a declaration: its type's, whatever its @name."""
    return f"{path}.{name}" if path else name


def declare(frame: Frame, node: ast.Instantiation, path: str, applications: int = 1) -> Binding:
    """Return the instance that a declaration makes inside the instance called `path`."""
    if node.members:
        raise UnsupportedError("an instance that implements abstract methods", node.span)
    type_ = node.type_ref.resolved
    assert isinstance(type_, t.DeclaredType), node
    instance = instantiate(frame, type_, node.arguments, plane_name(node, path), node)
    if isinstance(instance, ControlInstance | ParserInstance):
        instance.applications = applications
    return instance


def instantiate(
    frame: Frame,
    type_: t.DeclaredType,
    arguments: list[ast.Argument],
    name: str,
    node: ast.Call | ast.Instantiation,
) -> Binding:
    """Return a new instance of a control, parser or extern."""
    declaration = type_.declaration
    types = tuple(frame.scope.closed(argument) for argument in type_.arguments)
    if isinstance(declaration, ast.ExternDeclaration) and declaration.name not in extern_objects.KINDS:
        return custom_externs.instantiate(frame, declaration, arguments, name, node)
    if isinstance(declaration, ast.ExternDeclaration):
        return extern_objects.instantiate(frame, declaration, types, arguments, name, node)
    if isinstance(declaration, ast.PackageDeclaration):
        message = f"{name} is a {declaration.name} and no V1Switch: only v1model's architecture is supported"
        raise UnsupportedError(message, node.span)
    if not isinstance(declaration, ast.ControlDeclaration | ast.ParserDeclaration):
        raise UnsupportedError("an instance of something that is no control, parser or extern", node.span)
    scope = Scope(frame.unit.globals, dict(zip(declaration.type_parameters, types, strict=False)), name)
    inner = frame.inner(scope, node)
    given = {a.parameter: a.value for a in arguments if a.parameter is not None}
    for parameter in declaration.constructor_parameters:
        value = given.get(parameter) or parameter.default
        assert value is not None, node
        scope.bindings[parameter] = construct(frame, value, name)
    if isinstance(declaration, ast.ParserDeclaration):
        _declare_locals(
            inner, declaration.locals, name, _applications(declaration.locals, declaration.states)
        )
        return ParserInstance(declaration, scope, name)
    _declare_locals(inner, declaration.locals, name, _applications(declaration.locals, declaration.body))
    return ControlInstance(declaration, scope, name)


def _declare_locals(
    frame: Frame, declarations: list[ast.Declaration], path: str, applications: Counter[ast.Declaration]
) -> None:
    for local in declarations:
        name = plane_name(local, path)
        match local:
            case ast.ConstantDeclaration():
                frame.scope.bindings[local] = frame.constant_value(local)
            case ast.Instantiation():
                frame.scope.bindings[local] = declare(frame, local, path, applications[local])
            case ast.ActionDeclaration():
                frame.scope.bindings[local] = ActionClosure(local, frame.scope, name)
            case ast.TableDeclaration():
                frame.scope.bindings[local] = TableInstance(local, frame.scope, name)
            case ast.ValueSetDeclaration():
                frame.scope.bindings[local] = value_sets.declare(frame, local, name)
            case _:
                pass


def _applications(locals_: list[ast.Declaration], body: object) -> Counter[ast.Declaration]:
    """Return how often each instance is applied: once for each mention in the body.

    One that is given to another instance's constructor counts twice, as it may be applied anywhere.
    """
    counts = Counter(_mentioned(body))
    for local in locals_:
        if isinstance(local, ast.Instantiation):
            counts.update(2 * list(_mentioned(local.arguments)))
    return counts


def _mentioned(node: object) -> Iterator[ast.Declaration]:
    for name in walk(node):
        if isinstance(name, ast.Name) and name.declaration is not None:
            yield name.declaration


def applied_instance(frame: Frame, node: ast.Call) -> Binding:
    """Return the instance that `x.apply(...)` applies; for `C.apply(...)` an instance of its own, named like
    C.
    """
    assert isinstance(node.callee, ast.Member), node
    base = node.callee.base
    named = base.declaration if isinstance(base, ast.Name) else None
    if named is not None and not isinstance(named, ast.ControlDeclaration | ast.ParserDeclaration):
        return frame.find(named)
    type_ = base.ref.resolved if isinstance(base, ast.TypeName) else base.type
    assert isinstance(type_, t.DeclaredType), node
    known = frame.scope.anonymous.get(node)
    if known is None:
        name = _inside(frame.scope.instance_path(), type_.declaration.name)
        known = frame.scope.anonymous[node] = instantiate(frame, type_, [], name, node)
    return known
