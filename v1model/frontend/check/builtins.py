"""Built-in methods of headers, stacks and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.constants import require_int
from v1model.frontend.check.lvalues import require_lvalue
from v1model.frontend.check.members import PARSER_PLACES, no_member
from v1model.frontend.check.rules import check
from v1model.frontend.check.show import show
from v1model.frontend.types import (
    BitType,
    BoolType,
    EnumType,
    IntegerType,
    NewType,
    RecordType,
    StackType,
    TupleType,
    Type,
    VarbitType,
    VoidType,
)

if TYPE_CHECKING:
    from v1model.frontend.check.scope import Context

HEADER_METHODS = ("isValid", "setValid", "setInvalid")
STACK_METHODS = ("push_front", "pop_front")
SIZE_METHODS = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")


def check_builtin(c: Context, node: ast.Call, callee: ast.Member) -> ast.Call:
    """Check a call `base.member(...)` whose base is checked and no extern object."""
    base, name = callee.base.type, callee.member
    node.kind = "builtin"
    is_type = isinstance(callee.base, ast.TypeName)
    if name in SIZE_METHODS and base is not None:
        _no_arguments(node, name)
        return _size(node, base, name)
    if isinstance(base, RecordType) and base.kind != "struct" and not is_type and name in HEADER_METHODS:
        return _validity(c, node, callee, base)
    if isinstance(base, StackType) and not is_type and name in STACK_METHODS:
        return _shift_stack(c, node, callee)
    raise no_member(callee, _methods(base))


def _methods(base: Type | None) -> tuple[str, ...]:
    if isinstance(base, RecordType) and base.kind != "struct":
        return HEADER_METHODS + SIZE_METHODS
    return STACK_METHODS if isinstance(base, StackType) else ()


def _no_arguments(node: ast.Call, name: str) -> None:
    if node.arguments:
        raise CompileError(f"{name!r} takes no arguments", node.arguments[0].span)


def _validity(c: Context, node: ast.Call, callee: ast.Member, base: RecordType) -> ast.Call:
    _no_arguments(node, callee.member)
    if callee.member == "isValid":
        node.type = BoolType()
        return node
    if base.kind == "header_union":
        raise CompileError(f"a header union has no {callee.member!r}: use it on a member", callee.span)
    require_lvalue(c, callee.base, f"the base of {callee.member!r}")
    node.type = VoidType()
    return node


def _shift_stack(c: Context, node: ast.Call, callee: ast.Member) -> ast.Call:
    if c.place in PARSER_PLACES:
        raise CompileError(f"{callee.member!r} cannot be used in a parser", callee.span)
    require_lvalue(c, callee.base, f"the base of {callee.member!r}")
    if len(node.arguments) != 1 or node.arguments[0].value is None:
        raise CompileError(f"{callee.member!r} takes one argument, the count", node.span)
    argument = node.arguments[0]
    assert argument.value is not None
    argument.value = check(c, argument.value)
    if require_int(argument.value, "the count") < 0:
        raise CompileError("the count must not be negative", argument.span)
    node.type = VoidType()
    return node


# --- sizes -------------------------------------------------------------------------------


def _size(node: ast.Call, base: Type, name: str) -> ast.Call:
    """Fill in the size as a compile-time-known int (spec section 9.1)."""
    bits = size_bits(base, largest=name.startswith("max"))
    if bits is None:
        raise CompileError(f"{show(base)} has no size", node.span)
    node.type = IntegerType()
    node.constant = (bits + 7) // 8 if name.endswith("Bytes") else bits
    return node


def size_bits(found: Type, *, largest: bool) -> int | None:
    """Return the bits of a value with all varbits empty, or full; None if the type has no size."""
    match found:
        case BitType(width):
            return width
        case BoolType():
            return 1
        case VarbitType(width):
            return width if largest else 0
        case EnumType() if found.underlying:
            return found.underlying.width
        case NewType():
            return size_bits(found.base, largest=largest)
        case StackType(element, count):
            return _total([element] * count, largest=largest)
        case TupleType(elements):
            return _total(list(elements), largest=largest)
        case RecordType():
            fields = [kind for _, kind in found.fields]
            if found.kind != "header_union":
                return _total(fields, largest=largest)
            sizes = [size for kind in fields if (size := size_bits(kind, largest=largest)) is not None]
            return (max(sizes) if largest else min(sizes)) if sizes else 0
    return None


def _total(types: list[Type], *, largest: bool) -> int | None:
    sizes = [size_bits(kind, largest=largest) for kind in types]
    return None if None in sizes else sum(size for size in sizes if size is not None)
