"""Operands and results of operators (spec sections 8.5 to 8.12)."""

from __future__ import annotations

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.check.constants import fold_binary, fold_unary
from v1model.frontend.check.convert import convert, is_header, make_cast
from v1model.frontend.check.show import show
from v1model.frontend.check.substitute import DONT_CARE
from v1model.frontend.types import (
    MAX_WIDTH_BITS,
    BitType,
    BoolType,
    DeclaredType,
    EnumType,
    IntegerType,
    MatchKindType,
    NewType,
    RecordType,
    SetType,
    StringType,
    TupleType,
    Type,
    TypeVariable,
    VoidType,
)

LOGICAL = frozenset({"&&", "||"})
EQUALITY = frozenset({"==", "!="})
ORDER = frozenset({"<", "<=", ">", ">="})
SHIFTS = frozenset({"<<", ">>"})
SETS = frozenset({"&&&", ".."})
_UNTYPED = ast.ListExpression | ast.StructExpression | ast.InvalidExpression | ast.DefaultExpression
SATURATING = frozenset({"|+|", "|-|"})


def check_binary(node: ast.Binary) -> ast.Expression:
    """Check a binary expression whose operands are checked, and return it with its type."""
    if node.operator in LOGICAL:
        node.left, node.right = convert(node.left, BoolType()), convert(node.right, BoolType())
        node.type = BoolType()
    elif node.operator in EQUALITY:
        _equality(node)
    elif node.operator in SETS:
        _set(node)
    elif node.operator in SHIFTS:
        _shift(node)
    elif node.operator == "++":
        _concatenation(node)
    else:
        _arithmetic(node)
    node.constant = fold_binary(node)
    return node


def check_unary(node: ast.Unary) -> ast.Expression:
    """Check a unary expression whose operand is checked, and return it with its type."""
    if node.operator == "!":
        node.operand = convert(node.operand, BoolType())
    else:
        node.operand = _as_number(node.operand, node.operator)
        if node.operator == "~" and isinstance(node.operand.type, IntegerType):
            raise CompileError("'~' needs an operand with a width", node.span, "as in ~8w1")
    node.type = node.operand.type
    node.constant = fold_unary(node)
    return node


def check_ternary(node: ast.Ternary) -> ast.Expression:
    """Check a conditional expression whose operands are checked, and return it with its type."""
    node.then, node.otherwise = _same_type(node.then, node.otherwise, node)
    if isinstance(node.then.type, IntegerType) and node.condition.constant is None:
        raise CompileError("one of the two values needs a width", node.span, "as in 8w1")
    node.type = node.then.type
    if node.condition.constant is not None:
        node.constant = (node.then if node.condition.constant else node.otherwise).constant
    return node


# --- kinds of binary operators -----------------------------------------------------------


def _equality(node: ast.Binary) -> None:
    node.left, node.right = _same_type(node.left, node.right, node)
    kind = node.left.type
    if isinstance(node.left, _UNTYPED) and isinstance(node.right, _UNTYPED):
        raise CompileError("one of the two needs a type", node.span, "write it before, as in (S){...}")
    if isinstance(node.left, ast.Call) and node.left.kind == "apply":
        raise CompileError("the results of tables cannot be compared", node.span)
    if isinstance(kind, DeclaredType | VoidType | SetType | MatchKindType | StringType | TypeVariable):
        raise CompileError(f"values of {show(kind)} cannot be compared", node.span)
    node.type = BoolType()


def _set(node: ast.Binary) -> None:
    """Check a mask or a range; two `int` get their type from the place."""
    if _is_serializable(node.left) and _is_serializable(node.right):
        node.left, node.right = _as_number(node.left, ".."), _as_number(node.right, "..")
    node.left, node.right = _same_type(node.left, node.right, node)
    kind = node.left.type
    if not isinstance(kind, BitType | IntegerType | NewType):
        raise CompileError(f"{node.operator!r} cannot be used with {show(kind)}", node.span)
    node.type = SetType(kind)


def _shift(node: ast.Binary) -> None:
    node.left, node.right = _as_number(node.left, node.operator), _as_number(node.right, node.operator)
    amount = node.right.constant
    if isinstance(node.right.type, IntegerType):
        if not isinstance(amount, int):
            raise CompileError("the amount of a shift needs a width", node.right.span, "as in bit<8>")
        if amount < 0:
            raise CompileError("shift by a negative amount", node.right.span)
        if isinstance(node.left.type, BitType):
            width = min(max(1, amount.bit_length()), MAX_WIDTH_BITS)
            node.right = convert(node.right, BitType(width))
    elif isinstance(node.right.type, BitType) and node.right.type.signed:
        if isinstance(amount, int) and amount >= 0:
            node.right = make_cast(node.right, BitType(node.right.type.width))
        else:
            hint = "cast it to bit<>"
            raise CompileError("the amount of a shift must be unsigned", node.right.span, hint)
    if isinstance(node.left.type, IntegerType) and amount is None:
        raise CompileError("the shifted value needs a width", node.left.span, "as in 8w1")
    node.type = node.left.type


def _concatenation(node: ast.Binary) -> None:
    if isinstance(node.left.type, StringType) and isinstance(node.right.type, StringType):
        node.type = StringType()
        return
    node.left, node.right = _as_number(node.left, "++"), _as_number(node.right, "++")
    for operand in (node.left, node.right):
        if isinstance(operand.type, IntegerType):
            raise CompileError("'++' needs operands with a width", operand.span, "as in 8w1")
    assert isinstance(node.left.type, BitType)
    assert isinstance(node.right.type, BitType)
    width = node.left.type.width + node.right.type.width
    if width > MAX_WIDTH_BITS:
        raise CompileError(f"the result has {width} bits, at most {MAX_WIDTH_BITS} are possible", node.span)
    node.type = BitType(width, node.left.type.signed)


def _arithmetic(node: ast.Binary) -> None:
    """Check an operator with operands of one type: + - * / % & | ^ and comparisons of order."""
    node.left, node.right = _as_number(node.left, node.operator), _as_number(node.right, node.operator)
    node.left, node.right = _same_type(node.left, node.right, node)
    kind = node.left.type
    if node.operator in SATURATING and isinstance(kind, IntegerType):
        raise CompileError(f"{node.operator!r} needs operands with a width", node.span, "as in 8w1")
    if node.operator in ("/", "%") and isinstance(kind, BitType) and kind.signed:
        raise CompileError(f"{node.operator!r} is not defined for {show(kind)}", node.span)
    if node.operator in ("/", "%"):
        _check_divisor(node.right)
    node.type = BoolType() if node.operator in ORDER else kind


def _check_divisor(node: ast.Expression) -> None:
    if node.constant == 0:
        raise CompileError("division by zero", node.span)
    if isinstance(node.constant, int) and node.constant < 0:
        raise CompileError("division is not defined for negative numbers", node.span)


# --- operands ----------------------------------------------------------------------------


def _as_number(node: ast.Expression, operator: str) -> ast.Expression:
    """Return a bit<W>, int<W> or int; a serializable enum is converted to its underlying type."""
    if isinstance(node.type, EnumType) and node.type.underlying:
        return convert(node, node.type.underlying)
    if not isinstance(node.type, BitType | IntegerType):
        raise CompileError(f"{operator!r} cannot be used with {show(node.type)}", node.span)
    return node


def _same_type(
    left: ast.Expression, right: ast.Expression, node: ast.Expression
) -> tuple[ast.Expression, ast.Expression]:
    """Return both operands in one type: the more definite of the two."""
    if left.type == right.type:
        return left, right
    if _is_serializable(left) and isinstance(right.type, BitType | EnumType | IntegerType):
        return _same_type(_as_number(left, ""), right, node)
    if _is_serializable(right) and isinstance(left.type, BitType | IntegerType):
        return _same_type(left, _as_number(right, ""), node)
    if _is_weaker(left, right.type):
        return convert(left, _type(right)), right
    if _is_weaker(right, left.type):
        return left, convert(right, _type(left))
    types = f"{show(left.type)} and {show(right.type)}"
    raise CompileError(f"the operands differ in type: {types}", node.span, _hint(left, right))


def _is_serializable(node: ast.Expression) -> bool:
    return isinstance(node.type, EnumType) and node.type.underlying is not None


def _type(node: ast.Expression) -> Type:
    assert node.type is not None
    return node.type


def _is_weaker(node: ast.Expression, other: Type | None) -> bool:
    """Return whether a value gets its type from the other operand."""
    if isinstance(node.type, IntegerType):
        return isinstance(other, BitType | NewType)
    if node.type == DONT_CARE:
        return is_header(other)
    return isinstance(node, ast.ListExpression | ast.StructExpression) and isinstance(
        other, RecordType | TupleType
    )


def _hint(left: ast.Expression, right: ast.Expression) -> str:
    if isinstance(left.type, BitType) and isinstance(right.type, BitType):
        wider = max(left.type, right.type, key=lambda one: one.width)
        return f"cast one of them, as in ({show(wider)})(...)"
    return ""
