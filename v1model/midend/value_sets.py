"""Parser value sets: the keys of their members (spec section 13.11, P4Runtime section 9.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend.scope import ValueSetObject, name_annotation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.midend.frame import Frame

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")
MAX_SIZE = 1 << 20  # members; a parser's set is looked up for every packet


def declare(frame: Frame, node: ast.ValueSetDeclaration, name: str) -> ValueSetObject:
    """Return a value set, and add it to the program."""
    assert node.type_ref.resolved is not None, node
    type_ = frame.scope.closed(node.type_ref.resolved)
    size = frame.constant(node.size, "the size of a value set")
    if size > MAX_SIZE:
        raise UnsupportedError(f"a value set of more than {MAX_SIZE} members", node.size.span)
    if any(known.name == name for known in frame.unit.value_sets):
        raise CompileError(f"two value sets are called {name}", node.span)
    keys = tuple(_keys(frame, type_, "", (), node))
    value_set = ir.ValueSet(name, keys, size, tuple(node.annotations), node.span)
    frame.unit.value_sets.append(value_set)
    return ValueSetObject(value_set)


def _keys(
    frame: Frame,
    type_: t.Type,
    name: str,
    annotations: tuple[ast.Annotation, ...],
    node: ast.ValueSetDeclaration,
) -> Iterator[ir.Key]:
    """Yield one key for each single value in the members' type; nested fields are named `outer.inner`."""
    match type_:
        case t.RecordType(kind="struct", fields=fields, declaration=declaration):
            written = {field.name: field for field in declaration.fields}
            for field, kind in fields:
                own = tuple(written[field].annotations)
                inner = name_annotation(own) or field
                yield from _keys(frame, kind, f"{name}.{inner}" if name else inner, own, node)
        case t.TupleType(elements=elements):
            for position, kind in enumerate(elements):
                yield from _keys(frame, kind, f"{name}.f{position}" if name else f"f{position}", (), node)
        case _:
            shape = frame.unit.shapes.of(type_, node.span)
            if not isinstance(shape, ir.Bits | ir.Bool):
                raise UnsupportedError("a value set of something that no single value matches", node.span)
            kind_name = _match_kind(annotations)
            yield ir.Key(ir.Var(name, shape), kind_name, name, "", annotations, type_)


def _match_kind(annotations: tuple[ast.Annotation, ...]) -> str:
    """Return the match kind of @match(kind) of a struct's field; "exact" without it."""
    for annotation in annotations:
        if annotation.name == "match":
            kind = annotation.text.strip()
            if kind not in MATCH_KINDS:
                raise CompileError(f"@match({kind}) is not one of {', '.join(MATCH_KINDS)}", annotation.span)
            return kind
    return "exact"
