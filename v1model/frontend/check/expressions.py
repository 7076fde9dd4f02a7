"""The types and values of expressions (spec section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend.check import calls, members, resolve
from v1model.frontend.check.constants import require_int, wrap
from v1model.frontend.check.convert import cast, convert, list_constant
from v1model.frontend.check.operators import check_binary, check_ternary, check_unary
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
    from collections.abc import Callable

    from v1model.frontend.check.scope import Context


def check(c: Context, node: ast.Expression, hint: Type | None = None) -> ast.Expression:
    """`node`, or what replaces it, with its type and value filled in.

    `hint` is the type that the place wants; it only helps to infer type arguments.
    """
    if isinstance(node, ast.Call):
        return calls.check_call(c, node, hint)
    return _RULES[type(node)](c, node)


def check_as(c: Context, node: ast.Expression, target: Type) -> ast.Expression:
    """`node` checked and converted to `target`."""
    return convert(check(c, node, target), target)


def check_constant(c: Context, node: ast.Expression, what: str) -> ast.Expression:
    """`node` checked; its value must be known at compile time."""
    found = check(c, node)
    if not is_compile_time(found):
        raise CompileError(f"{what} must be known at compile time", node.span)
    return found


def is_compile_time(node: ast.Expression) -> bool:
    """Whether the value is known once the program is instantiated (spec section 18.1)."""
    if node.constant is not None:
        return True
    match node:
        case ast.Name():
            return _is_compile_time_name(node)
        case ast.Call():
            return node.kind == "constructor"
        case ast.ListExpression():
            return all(is_compile_time(element) for element in node.elements)
        case ast.StructExpression():
            return all(is_compile_time(value) for value in node.fields.values())
        case ast.Binary():
            return is_compile_time(node.left) and is_compile_time(node.right)
        case ast.Unary() | ast.Cast():
            return is_compile_time(node.operand)
        case ast.Ternary():
            return all(is_compile_time(part) for part in (node.condition, node.then, node.otherwise))
        case ast.Member() | ast.Index() | ast.Slice():
            return is_compile_time(node.base)
    return isinstance(node, ast.InvalidExpression | ast.DefaultExpression)


def _is_compile_time_name(node: ast.Name) -> bool:
    declaration = node.declaration
    if isinstance(declaration, ast.Parameter):
        return declaration.direction == ""
    return isinstance(declaration, ast.ConstantDeclaration | ast.Instantiation)


# --- literals and names ------------------------------------------------------------------


def _int_literal(c: Context, node: ast.IntLiteral) -> ast.Expression:
    node.type = IntegerType() if node.width is None else BitType(node.width, node.signed)
    node.constant = node.value
    return node


def _bool_literal(c: Context, node: ast.BoolLiteral) -> ast.Expression:
    node.type, node.constant = BoolType(), node.value
    return node


def _string_literal(c: Context, node: ast.StringLiteral) -> ast.Expression:
    node.type, node.constant = StringType(), node.value
    return node


def _default_expression(c: Context, node: ast.DefaultExpression) -> ast.Expression:
    node.type = DONT_CARE
    return node


def _name(c: Context, node: ast.Name) -> ast.Expression:
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
    return c.lookup(node.name, node.span, absolute=node.absolute)


def _this(c: Context, node: ast.Name) -> ast.Expression:
    if c.this is None:
        raise CompileError("'this' is only known where an abstract method is implemented", node.span)
    node.type = c.this
    return node


def _type_name(c: Context, node: ast.TypeName) -> ast.Expression:
    raise CompileError(f"{show(resolve.resolve(c, node.ref))} is a type, not a value", node.span)


# --- parts of values ---------------------------------------------------------------------


def _member(c: Context, node: ast.Member) -> ast.Expression:
    return members.check_member(c, node)


def _index(c: Context, node: ast.Index) -> ast.Expression:
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
    """An index may be cast to `int`, for which a stack has no use."""
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


def _slice(c: Context, node: ast.Slice) -> ast.Expression:
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
    """`base[low+:width]` as `base[low+width-1:low]`, or, where low is only known at run time, as
    `(base >> low)[width-1:0]`, which has the same value but is no place to write to."""
    width = require_int(node.high, "the width of a slice")
    if width < 1:
        raise CompileError("the width of a slice must be at least 1", node.high.span)
    if isinstance(node.low.constant, int):
        low = node.low.constant
    else:
        low = 0
        node.base = check_binary(ast.Binary(node.span, ">>", node.base, node.low))
        if isinstance(kind, BitType) and kind.signed:
            raise UnsupportedError("a slice of a signed value at a position not known before", node.span)
    node.low = _int_constant(node.low.span, low)
    node.high = _int_constant(node.high.span, low + width - 1)
    node.is_indexed = False


def _int_constant(span: ast.Span, value: int) -> ast.IntLiteral:
    return ast.IntLiteral(span, value, type=IntegerType(), constant=value)


# --- compound values ---------------------------------------------------------------------


def _list_expression(c: Context, node: ast.ListExpression) -> ast.Expression:
    node.elements = [check(c, element) for element in node.elements]
    node.type = TupleType(tuple(_value_type(element) for element in node.elements))
    node.constant = list_constant(node)
    return node


def _struct_expression(c: Context, node: ast.StructExpression) -> ast.Expression:
    for name, value in node.fields.items():
        node.fields[name] = check(c, value)
    fields = tuple((name, _value_type(value)) for name, value in node.fields.items())
    declaration = ast.StructDeclaration(node.span, "", "struct", [])
    node.type = RecordType("struct", "", fields, declaration)
    if node.type_ref is not None:
        return convert(node, resolve.complete(c, node.type_ref))
    return node


def _value_type(node: ast.Expression) -> Type:
    """The type of an element; a list or struct cannot hold types, tables or functions."""
    if node.type is None or (
        isinstance(node.type, DeclaredType)
        and isinstance(node.type.declaration, ast.ActionDeclaration | ast.FunctionDeclaration)
    ):
        raise CompileError(f"{show(node.type)} is not a value", node.span)
    return node.type


def _invalid_expression(c: Context, node: ast.InvalidExpression) -> ast.Expression:
    node.type = DONT_CARE
    return node


def _cast(c: Context, node: ast.Cast) -> ast.Expression:
    target = node.target.resolved or resolve.complete(c, node.target)
    node.operand = check(c, node.operand, target)
    return cast(node, target)


def _binary(c: Context, node: ast.Binary) -> ast.Expression:
    node.left, node.right = check(c, node.left), check(c, node.right)
    return check_binary(node)


def _unary(c: Context, node: ast.Unary) -> ast.Expression:
    node.operand = check(c, node.operand)
    return check_unary(node)


def _ternary(c: Context, node: ast.Ternary) -> ast.Expression:
    node.condition = check_as(c, node.condition, BoolType())
    node.then, node.otherwise = check(c, node.then), check(c, node.otherwise)
    return check_ternary(node)


_RULES: dict[type[ast.Expression], Callable[[Context, Any], ast.Expression]] = {
    ast.IntLiteral: _int_literal,
    ast.BoolLiteral: _bool_literal,
    ast.StringLiteral: _string_literal,
    ast.DefaultExpression: _default_expression,
    ast.Name: _name,
    ast.TypeName: _type_name,
    ast.Member: _member,
    ast.Index: _index,
    ast.Slice: _slice,
    ast.ListExpression: _list_expression,
    ast.StructExpression: _struct_expression,
    ast.InvalidExpression: _invalid_expression,
    ast.Cast: _cast,
    ast.Binary: _binary,
    ast.Unary: _unary,
    ast.Ternary: _ternary,
}
