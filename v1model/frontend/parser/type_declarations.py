"""Declarations of types: structs, headers, unions, enums, errors, match kinds, typedefs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.parser import types
from v1model.frontend.parser.annotations import annotation_list
from v1model.frontend.parser.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.frontend.parser.cursor import Cursor

Annotations = list[ast.Annotation]


def _struct_declaration(p: Cursor, found_annotations: Annotations) -> ast.StructDeclaration:
    """Parse `("struct" | "header" | "header_union") name [typeParameters] "{" {field} "}"`."""
    kind = p.advance().kind
    name = p.name(f"the name of a {kind}")
    with p.scope():
        type_parameters = types.type_parameters(p)
        fields = p.braced(_field)
    p.declare(name.text, is_type=True)
    return ast.StructDeclaration(
        name.span, name.text, kind, fields, type_parameters, annotations=found_annotations
    )


def _field(p: Cursor) -> ast.FieldDeclaration:
    found_annotations = annotation_list(p)
    type_ref = types.type_ref(p)
    name = p.name("the name of a field")
    type_ref = types.array_type(p, type_ref)
    p.expect(";", "after the field")
    return ast.FieldDeclaration(name.span, name.text, type_ref, annotations=found_annotations)


def _enum_declaration(p: Cursor, found_annotations: Annotations) -> ast.EnumDeclaration:
    """Parse `enum [underlying] name "{" member {"," member} "}"`."""
    p.expect("enum")
    underlying = types.type_ref(p) if types.at_type(p) and p.peek().kind != "{" else None
    name = p.name("the name of an enum")
    members: dict[str, ast.Expression | None] = {}

    def member(p: Cursor) -> None:
        token = p.name("a member of the enum")
        if token.text in members:
            raise CompileError(f"{token.text!r} is already a member of enum {name.text}", token.span)
        members[token.text] = expression(p) if p.accept("=") else None

    p.expect("{")
    p.separated(member, "}", trailing_comma=True)
    p.declare(name.text, is_type=True)
    return ast.EnumDeclaration(name.span, name.text, members, underlying, annotations=found_annotations)


def _error_declaration(p: Cursor, found_annotations: Annotations) -> ast.ErrorDeclaration:
    span = p.expect("error").span
    return ast.ErrorDeclaration(span, "error", _identifiers(p), annotations=found_annotations)


def _match_kind_declaration(p: Cursor, found_annotations: Annotations) -> ast.MatchKindDeclaration:
    span = p.expect("match_kind").span
    return ast.MatchKindDeclaration(span, "match_kind", _identifiers(p), annotations=found_annotations)


def _identifiers(p: Cursor) -> list[str]:
    p.expect("{")
    return p.separated(lambda p: p.name().text, "}", trailing_comma=True)


def _typedef_declaration(p: Cursor, found_annotations: Annotations) -> ast.TypedefDeclaration:
    """Parse `("typedef" | "type") (typeRef | derivedTypeDeclaration) name ;`."""
    is_new = p.advance().kind == "type"
    if p.kind in ("struct", "header", "header_union", "enum"):
        inner = TYPE_DECLARATIONS[p.kind](p, [])
        p.hoisted.append(inner)
        type_ref: ast.TypeRef = ast.NamedTypeRef(inner.span, inner.name)
    else:
        type_ref = types.type_ref(p)
    name = p.name("the name of the type")
    type_ref = types.array_type(p, type_ref)
    p.expect(";", "after the type")
    p.declare(name.text, is_type=True)
    return ast.TypedefDeclaration(name.span, name.text, type_ref, is_new, annotations=found_annotations)


TYPE_DECLARATIONS: dict[str, Callable[[Cursor, Annotations], ast.Declaration]] = {
    "struct": _struct_declaration,
    "header": _struct_declaration,
    "header_union": _struct_declaration,
    "enum": _enum_declaration,
    "error": _error_declaration,
    "match_kind": _match_kind_declaration,
    "typedef": _typedef_declaration,
    "type": _typedef_declaration,
}
