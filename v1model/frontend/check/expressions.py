"""Types and values of expressions (spec section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check import members, resolve
from v1model.frontend.check.constants import require_int, wrap
from v1model.frontend.check.convert import cast, convert, list_constant
from v1model.frontend.check.operators import check_binary, check_ternary, check_unary
from v1model.frontend.check.rules import check, check_as, checks
from v1model.frontend.check.scope import VALUES
from v1model.frontend.check.show import show
from v1model.frontend.check.substitute import DONT_CARE
from v1model.frontend.types import (
    BitType,
    BoolType,
    DeclaredType,
    EnumType,
    IntegerType,
    MatchKindType,
    RecordType,
    SetType,
    StackType,
    StringType,
    TupleType,
    Type,
    TypeVariable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.frontend.check.scope import Context


# --- literals and names ------------------------------------------------------------------


@checks(ast.IntLiteral)
def _int_literal(c: Context, node: ast.IntLiteral, _hint: Type | None) -> ast.Expression:
    node.type = IntegerType() if node.width is None else BitType(node.width, node.signed)
    node.constant = node.value
    return node


@checks(ast.BoolLiteral)
def _bool_literal(c: Context, node: ast.BoolLiteral, _hint: Type | None) -> ast.Expression:
    node.type, node.constant = BoolType(), node.value
    return node


@checks(ast.StringLiteral)
def _string_literal(c: Context, node: ast.StringLiteral, _hint: Type | None) -> ast.Expression:
    node.type, node.constant = StringType(), node.value
    return node


@checks(ast.DefaultExpression)
def _default_expression(c: Context, node: ast.DefaultExpression, _hint: Type | None) -> ast.Expression:
    node.type = DONT_CARE
    return node


@checks(ast.Name)
def _name(c: Context, node: ast.Name, _hint: Type | None) -> ast.Expression:
    if node.name == "this":
        return _this(c, node)
    symbol = _lookup_value(c, node)
    match symbol:
        case list():
            node.declaration, node.type = symbol[0], DeclaredType(symbol[0])
        case ast.ConstantDeclaration():
            node.declaration, node.type = symbol, symbol.type_ref.resolved
            node.constant = symbol.value.constant
        case ast.VariableDeclaration() | ast.Parameter() | ast.Instantiation():
            node.declaration, node.type = symbol, symbol.type_ref.resolved
        case ast.TableDeclaration() | ast.ActionDeclaration():
            node.declaration, node.type = symbol, DeclaredType(symbol)
        case ast.ValueSetDeclaration():
            assert symbol.type_ref.resolved is not None
            node.declaration, node.type = symbol, SetType(symbol.type_ref.resolved)
        case ast.MatchKindDeclaration():
            node.declaration, node.type = symbol, MatchKindType()
            node.constant = c.match_kinds[node.name]
        case TypeVariable():
            raise CompileError(f"{node.name!r} is a type, not a value", node.span)
        case _:
            raise CompileError(f"{node.name!r} is not a value", node.span)
    return node


def _lookup_value(c: Context, node: ast.Name) -> Any:
    return c.lookup(node.name, node.span, absolute=node.absolute, kinds=VALUES)


def _this(c: Context, node: ast.Name) -> ast.Expression:
    if c.this is None:
        raise CompileError("'this' is only known where an abstract method is implemented", node.span)
    node.type = c.this
    return node


@checks(ast.TypeName)
def _type_name(c: Context, node: ast.TypeName, _hint: Type | None) -> ast.Expression:
    raise CompileError(f"{show(resolve.resolve(c, node.ref))} is a type, not a value", node.span)


# --- parts of values ---------------------------------------------------------------------


@checks(ast.Member)
def _member(c: Context, node: ast.Member, _hint: Type | None) -> ast.Expression:
    return members.check_member(c, node)


@checks(ast.Index)
def _index(c: Context, node: ast.Index, _hint: Type | None) -> ast.Expression:
    node.base = check(c, node.base)
    node.index = check(c, _without_cast_to_int(node.index))
    match node.base.type:
        case StackType(element, size):
            node.type = element
            _check_stack_index(node, size)
        case TupleType(elements):
            position = require_int(node.index, "the index of a tuple")
            if not 0 <= position < len(elements):
                raise CompileError(f"a tuple of {len(elements)} has no element {position}", node.index.span)
            node.type = elements[position]
            if isinstance(node.base.constant, tuple):
                node.constant = node.base.constant[position]
        case _:
            raise CompileError(f"{show(node.base.type)} has no index", node.base.span)
    return node


def _without_cast_to_int(node: ast.Expression) -> ast.Expression:
    """Return an index without casts to `int`, which a stack does not need."""
    while isinstance(node, ast.Cast) and isinstance(node.target, ast.BaseTypeRef):
        if node.target.name != "int" or node.target.width is not None:
            break
        node = node.operand
    return node


def _check_stack_index(node: ast.Index, size: int) -> None:
    if isinstance(node.index.type, EnumType) and node.index.type.underlying:
        node.index = convert(node.index, node.index.type.underlying)
    if isinstance(node.index.type, IntegerType):
        node.index = convert(node.index, BitType(32))
    if not isinstance(node.index.type, BitType):
        raise CompileError(f"the index of a stack cannot be {show(node.index.type)}", node.index.span)
    value = node.index.constant
    if isinstance(value, int) and not 0 <= value < size:
        raise CompileError(f"a stack of {size} has no element {value}", node.index.span)


@checks(ast.Slice)
def _slice(c: Context, node: ast.Slice, _hint: Type | None) -> ast.Expression:
    node.base = check(c, node.base)
    node.high, node.low = check(c, node.high), check(c, node.low)
    if isinstance(node.base.type, EnumType) and node.base.type.underlying:
        node.base = convert(node.base, node.base.type.underlying)
    kind = node.base.type
    if not isinstance(kind, BitType | IntegerType):
        raise CompileError(f"{show(kind)} cannot be sliced", node.base.span)
    if node.is_indexed:
        _resolve_indexed_slice(node, kind)
    low = require_int(node.low, "the low bound of a slice")
    high = require_int(node.high, "the high bound of a slice")
    if low < 0 or high < low:
        raise CompileError(f"[{high}:{low}] is no slice: it must be [high:low]", node.high.span)
    if isinstance(kind, BitType) and high >= kind.width:
        raise CompileError(f"{show(kind)} has no bit {high}", node.high.span)
    node.type = BitType(high - low + 1)
    if isinstance(node.base.constant, int):
        node.constant = wrap(node.base.constant >> low, node.type)
    return node


def _resolve_indexed_slice(node: ast.Slice, kind: BitType | IntegerType) -> None:
    """Rewrite `base[low+:width]` as `base[low+width-1:low]`.

    If low is known at run time only, it becomes `(base >> low)[width-1:0]`, which has the same value but
    can't be assigned to.
    """
    width = require_int(node.high, "the width of a slice")
    if width < 1:
        raise CompileError("the width of a slice must be at least 1", node.high.span)
    if isinstance(node.low.constant, int):
        low = node.low.constant
    else:
        low = 0
        node.is_moving = True
        node.base = check_binary(ast.Binary(node.span, ">>", node.base, node.low))
        if isinstance(kind, BitType) and kind.signed:
            raise UnsupportedError("a slice of a signed value at a position not known before", node.span)
    node.low = _int_constant(node.low.span, low)
    node.high = _int_constant(node.high.span, low + width - 1)
    node.is_indexed = False


def _int_constant(span: ast.Span, value: int) -> ast.IntLiteral:
    return ast.IntLiteral(span, value, type=IntegerType(), constant=value)


# --- compound values ---------------------------------------------------------------------


@checks(ast.ListExpression)
def _list_expression(c: Context, node: ast.ListExpression, _hint: Type | None) -> ast.Expression:
    node.elements = [check(c, element) for element in node.elements]
    node.type = TupleType(tuple(_value_type(element) for element in node.elements))
    node.constant = list_constant(node)
    return node


@checks(ast.StructExpression)
def _struct_expression(c: Context, node: ast.StructExpression, _hint: Type | None) -> ast.Expression:
    for name, value in node.fields.items():
        node.fields[name] = check(c, value)
    fields = tuple((name, _value_type(value)) for name, value in node.fields.items())
    declaration = ast.StructDeclaration(node.span, "", "struct", [])
    node.type = RecordType("struct", "", fields, declaration)
    if node.type_ref is not None:
        return convert(node, resolve.complete(c, node.type_ref))
    return node


def _value_type(node: ast.Expression) -> Type:
    """Return the type of an element; a list or struct cannot hold actions or functions."""
    if node.type is None or (
        isinstance(node.type, DeclaredType)
        and isinstance(node.type.declaration, ast.ActionDeclaration | ast.FunctionDeclaration)
    ):
        raise CompileError(f"{show(node.type)} is not a value", node.span)
    return node.type


@checks(ast.InvalidExpression)
def _invalid_expression(c: Context, node: ast.InvalidExpression, _hint: Type | None) -> ast.Expression:
    node.type = DONT_CARE
    return node


@checks(ast.Cast)
def _cast(c: Context, node: ast.Cast, _hint: Type | None) -> ast.Expression:
    target = node.target.resolved or resolve.complete(c, node.target)
    if isinstance(target, BitType):
        c.cut_again.update(_casts_to_int(node.operand))
    node.operand = check(c, node.operand, target)
    if isinstance(target, IntegerType) and id(node) in c.cut_again and isinstance(node.operand.type, BitType):
        node.type = target
        node.constant = node.operand.constant
        return node
    return cast(node, target)


def _casts_to_int(node: ast.Expression) -> Iterator[int]:
    """Yield the ids of the casts in a sum, difference or product that is cut to a width again.

    There an `int` need not be known, as only the bits within the width count.
    """
    match node:
        case ast.Binary(operator="+" | "-" | "*"):
            yield from _casts_to_int(node.left)
            yield from _casts_to_int(node.right)
        case ast.Cast():
            yield id(node)


@checks(ast.Binary)
def _binary(c: Context, node: ast.Binary, _hint: Type | None) -> ast.Expression:
    node.left, node.right = check(c, node.left), check(c, node.right)
    return check_binary(node)


@checks(ast.Unary)
def _unary(c: Context, node: ast.Unary, _hint: Type | None) -> ast.Expression:
    node.operand = check(c, node.operand)
    return check_unary(node)


@checks(ast.Ternary)
def _ternary(c: Context, node: ast.Ternary, _hint: Type | None) -> ast.Expression:
    node.condition = check_as(c, node.condition, BoolType())
    node.then, node.otherwise = check(c, node.then), check(c, node.otherwise)
    return check_ternary(node)
