"""Bindings of names while a program is evaluated: scopes, and the instances in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.midend.shapes import substitute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from v1model.frontend import types as t


@dataclass(eq=False, slots=True)
class Packet:
    """packet_in or packet_out."""


@dataclass(eq=False, slots=True)
class ControlInstance:
    """Instance of a control. `path` is its control-plane name, `applications` the number of its applications.

    `scope` has its locals, and its parameters once it is first applied.
    """

    declaration: ast.ControlDeclaration
    scope: Scope
    path: str
    applications: int = 1


@dataclass(eq=False, slots=True)
class ParserInstance:
    declaration: ast.ParserDeclaration
    scope: Scope
    path: str
    applications: int = 1


@dataclass(eq=False, slots=True)
class ExternObject:
    """Instance of a v1model extern; `resource` is the control plane's view of it."""

    resource: ir.ExternInstance


@dataclass(eq=False, slots=True)
class CustomExtern:
    """Instance of an extern object whose C is the user's."""

    resource: ir.CustomObject


@dataclass(eq=False, slots=True)
class ValueSetObject:
    """Parser's value set, as the control plane sees it."""

    value_set: ir.ValueSet


@dataclass(eq=False, slots=True)
class TableInstance:
    """Table; `lowered` once it was applied. `may_exit` says that one of its actions executes `exit`."""

    declaration: ast.TableDeclaration
    scope: Scope
    name: str
    lowered: bool = False
    actions: tuple[str, ...] = ()
    may_exit: bool = False
    hoisted_keys: dict[int, ir.Var] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class ActionClosure:
    declaration: ast.ActionDeclaration
    scope: Scope
    name: str


Binding = (
    ir.Expr
    | Packet
    | ControlInstance
    | ParserInstance
    | ExternObject
    | CustomExtern
    | ValueSetObject
    | TableInstance
    | ActionClosure
)


@dataclass(eq=False, slots=True)
class Scope:
    """Bindings of one activation or instance; names that are not found here are looked up in the parent.

    `path` is the instance's control-plane name.
    """

    parent: Scope | None = None
    types: dict[str, t.Type] = field(default_factory=dict)
    path: str = ""
    bindings: dict[ast.Declaration, Binding] = field(default_factory=dict)
    anonymous: dict[ast.Call, Binding] = field(default_factory=dict)  # instances of `C.apply(...)`

    def find(self, declaration: ast.Declaration) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            if declaration in scope.bindings:
                return scope.bindings[declaration]
            scope = scope.parent
        return None

    def instance_path(self) -> str:
        """Return the control-plane name of the instance that this activation belongs to."""
        if self.path or self.parent is None:
            return self.path
        return self.parent.instance_path()

    def closed(self, type_: t.Type) -> t.Type:
        """Return `type_` with the type parameters that are in scope replaced."""
        scope: Scope | None = self
        while scope is not None:
            type_ = substitute(type_, scope.types)
            scope = scope.parent
        return type_


def plane_name(declaration: ast.Declaration, path: str) -> str:
    """Return the control plane's name of a declaration inside the instance `path`.

    It is that of @name, absolute with a leading dot or relative, or else the declaration's own name.
    """
    own = name_annotation(declaration.annotations) or declaration.name
    if own.startswith("."):
        return own[1:]
    return f"{path}.{own}" if path else own


def name_annotation(annotations: Iterable[ast.Annotation]) -> str:
    """Return the name in @name, or ""."""
    for annotation in annotations:
        if annotation.name == "name":
            if not (text := annotation_text(annotation)) or text == "." or not _has_string(annotation):
                raise CompileError('@name must hold a name: @name("x")', annotation.span)
            return text
    return ""


def _has_string(annotation: ast.Annotation) -> bool:
    return any(isinstance(expression, ast.StringLiteral) for expression in annotation.expressions)


def annotation_text(annotation: ast.Annotation) -> str:
    """Return the one string in an annotation such as @name("x")."""
    for expression in annotation.expressions:
        if isinstance(expression, ast.StringLiteral):
            return expression.value
    return annotation.text.strip().strip('"')
