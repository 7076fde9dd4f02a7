"""Expressions: values without side effects; side effects are emitted before them in P4's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.frontend import types as t
from v1model.midend import fold
from v1model.midend.frame import as_index, lowers
from v1model.midend.shapes import INDEX, INTEGER
from v1model.midend.tables import apply_result
from v1model.midend.values import as_path, convert, default_value, invalid, is_composite

if TYPE_CHECKING:
    from v1model.midend.frame import Frame


@lowers(ast.IntLiteral)
def _int_literal(frame: Frame, node: ast.IntLiteral) -> ir.Expr:
    return fold.bits(node.value, frame.shape(node))


@lowers(ast.BoolLiteral)
def _bool_literal(_frame: Frame, node: ast.BoolLiteral) -> ir.Expr:
    return fold.boolean(node.value)


@lowers(ast.StringLiteral)
def _string_literal(_frame: Frame, node: ast.StringLiteral) -> ir.Expr:
    return ir.Const(node.value, ir.String())


@lowers(ast.InvalidExpression)
def _invalid(frame: Frame, node: ast.InvalidExpression) -> ir.Expr:
    return invalid(frame.shape(node))


@lowers(ast.DefaultExpression)
def _default(frame: Frame, node: ast.DefaultExpression) -> ir.Expr:
    return default_value(frame.shape(node))


@lowers(ast.Name)
def _name(frame: Frame, node: ast.Name) -> ir.Expr:
    assert node.declaration is not None, node
    binding = frame.find(node.declaration)
    if not isinstance(binding, ir.Expr):
        raise UnsupportedError(f"{node.name} is not a value", node.span)
    return binding


@lowers(ast.Member)
def _member(frame: Frame, node: ast.Member) -> ir.Expr:
    if isinstance(node.base, ast.TypeName):
        return _type_member(frame, node, node.base)
    if node.base.type is not None and isinstance(frame.type_of(node.base), t.StackType):
        return _stack_member(frame, node)
    if isinstance(node.base, ast.Call) and node.base.kind == "apply":
        return apply_result(frame, node.base, node.member)
    base = frame.expression(node.base)
    if not isinstance(base.type, ir.Struct | ir.Header | ir.Union):
        raise UnsupportedError(f"{node.member} is not a value", node.span)
    return fold.member(as_path(frame, base), node.member)


def _type_member(frame: Frame, node: ast.Member, base: ast.TypeName) -> ir.Expr:
    """Lower E.member of an enum, or error.member."""
    assert base.ref.resolved is not None
    type_ = frame.scope.closed(base.ref.resolved)
    if isinstance(type_, t.ErrorType):
        return ir.Const(frame.unit.errors.index(node.member), INDEX)
    if isinstance(type_, t.EnumType):
        return fold.bits(dict(type_.members)[node.member], frame.unit.shapes.of(type_))
    raise UnsupportedError(f"{node.member} of a type that is neither an enum nor error", node.span)


def _stack_member(frame: Frame, node: ast.Member) -> ir.Expr:
    base = frame.expression(node.base)
    assert isinstance(base.type, ir.Stack)
    if node.member == "size":
        return ir.Const(base.type.size, INDEX)
    if not frame.builder.is_parser:
        raise CompileError(f"{node.member} of a header stack may only be used in a parser", node.span)
    if node.member == "lastIndex":
        return ir.StackLastIndex(base)
    kind = ir.StackNext if node.member == "next" else ir.StackLast
    return kind(base, base.type.element)


@lowers(ast.Index)
def _index(frame: Frame, node: ast.Index) -> ir.Expr:
    base = frame.expression(node.base)
    before = len(frame.builder.out)
    index = as_index(frame.expression(node.index))
    if len(frame.builder.out) > before:
        base = frame.builder.pinned_at(before, base)
    if isinstance(base.type, ir.Struct):  # a tuple
        if not isinstance(index, ir.Const):
            raise CompileError("the index of a tuple must be known at compile time", node.index.span)
        return fold.member(as_path(frame, base), f"f{index.value}")
    if not isinstance(base.type, ir.Stack):
        raise UnsupportedError("only header stacks and tuples can be indexed", node.span)
    if isinstance(index, ir.Const) and isinstance(index.value, int) and index.value >= base.type.size:
        raise CompileError(f"index {index.value} of a stack of {base.type.size}", node.index.span)
    if isinstance(base, ir.Aggregate) and isinstance(index, ir.Const) and isinstance(index.value, int):
        elements = base.values
        return elements[index.value] if index.value < len(elements) else invalid(base.type.element)
    return ir.Index(as_path(frame, base), index, base.type.element)


@lowers(ast.Slice)
def _slice(frame: Frame, node: ast.Slice) -> ir.Expr:
    base = frame.expression(node.base)
    high, low = frame.constant(node.high, "a slice's bound"), frame.constant(node.low, "a slice's bound")
    return fold.slice_(base, high, low)


@lowers(ast.Unary)
def _unary(frame: Frame, node: ast.Unary) -> ir.Expr:
    return fold.unary(node.operator, frame.expression(node.operand), frame.shape(node))


@lowers(ast.Binary)
def _binary(frame: Frame, node: ast.Binary) -> ir.Expr:
    if node.operator in ("&&", "||"):
        return _short_circuit(frame, node)
    left, right = frame.in_order([node.left, node.right])
    if node.operator in ("<<", ">>"):
        right = as_index(right)
    elif node.operator != "++" and left.type != right.type:
        left, right = _unified(frame, left, right, node)
    left = frame.save(left) if isinstance(left, ir.Aggregate) else left
    right = frame.save(right) if isinstance(right, ir.Aggregate) else right
    return fold.binary(node.operator, left, right, frame.shape(node), node.span)


def _unified(frame: Frame, left: ir.Expr, right: ir.Expr, node: ast.Binary) -> tuple[ir.Expr, ir.Expr]:
    """Return both operands in one type, if one is a list or a compile-time integer."""
    if left.type == INTEGER or isinstance(left, ir.Aggregate):
        return convert(frame, left, right.type, node.left.span), right
    return left, convert(frame, right, left.type, node.right.span)


def _short_circuit(frame: Frame, node: ast.Binary) -> ir.Expr:
    left = frame.expression(node.left)
    decisive = node.operator == "||"
    if isinstance(left, ir.Const) and bool(left.value) == decisive:
        return left
    with frame.builder.collect() as effects:
        right = frame.expression(node.right)
    if not effects:
        return fold.binary(node.operator, left, right, ir.Bool())
    if isinstance(left, ir.Const):
        frame.emit(*effects)
        return right
    result = frame.save(left)
    condition = fold.unary("!", result, ir.Bool()) if decisive else result
    frame.emit(ir.If(condition, (*effects, ir.Assign(result, right))))
    return result


@lowers(ast.Ternary)
def _ternary(frame: Frame, node: ast.Ternary) -> ir.Expr:
    condition = frame.expression(node.condition)
    if isinstance(condition, ir.Const):
        return frame.expression(node.then if condition.value else node.otherwise)
    with frame.builder.collect() as then_effects:
        then = frame.expression(node.then)
    with frame.builder.collect() as else_effects:
        otherwise = frame.expression(node.otherwise)
    type_ = frame.shape(node)
    if not then_effects and not else_effects and not is_composite(type_):
        then = convert(frame, then, type_, node.then.span)
        return fold.ternary(condition, then, convert(frame, otherwise, type_, node.otherwise.span))
    result = frame.builder.temporary(type_)
    with frame.builder.collect() as then_body:
        frame.emit(*then_effects, ir.Assign(result, convert(frame, then, type_, node.then.span)))
    with frame.builder.collect() as else_body:
        frame.emit(*else_effects, ir.Assign(result, convert(frame, otherwise, type_, node.otherwise.span)))
    frame.emit(ir.If(condition, tuple(then_body), tuple(else_body)))
    return result


@lowers(ast.Cast)
def _cast(frame: Frame, node: ast.Cast) -> ir.Expr:
    shape = frame.shape_of(node.target)
    if isinstance(node.operand.type, t.IntegerType) and isinstance(shape, ir.Bits) and shape != INTEGER:
        return _modular(frame, node.operand, shape)
    return convert(frame, frame.expression(node.operand), shape, node.span)


def _modular(frame: Frame, node: ast.Expression, shape: ir.Bits) -> ir.Expr:
    """Lower an `int` expression that is cut to W bits, with W bits throughout.

    That gives the same result for additions, subtractions and multiplications with run-time values, as in
    (bit<8>)((int) x + 1).
    """
    if node.constant is None and isinstance(node, ast.Binary) and node.operator in ("+", "-", "*"):
        left = _modular(frame, node.left, shape)
        return fold.binary(node.operator, left, _modular(frame, node.right, shape), shape, node.span)
    if node.constant is None and isinstance(node, ast.Cast):
        return convert(frame, frame.expression(node.operand), shape, node.span)
    return convert(frame, frame.expression(node), shape, node.span)


@lowers(ast.ListExpression)
def _list(frame: Frame, node: ast.ListExpression) -> ir.Expr:
    type_ = frame.shape(node)
    values = frame.in_order(node.elements)
    if isinstance(type_, ir.Stack):
        elements = [convert(frame, value, type_.element, node.span) for value in values]
        return ir.Aggregate(tuple(elements), type_)
    assert isinstance(type_, ir.Struct | ir.Header), node
    fields = [field for _, field in type_.fields]
    converted = [convert(frame, v, f, node.span) for v, f in zip(values, fields, strict=False)]
    converted += [default_value(field) for field in fields[len(values) :]]
    return ir.Aggregate(tuple(converted), type_)


@lowers(ast.StructExpression)
def _struct(frame: Frame, node: ast.StructExpression) -> ir.Expr:
    type_ = frame.shape(node)
    if not isinstance(type_, ir.Struct | ir.Header):
        raise UnsupportedError("a list of fields for something that is no struct or header", node.span)
    values = dict(zip(node.fields, frame.in_order(list(node.fields.values())), strict=True))
    complete = [
        convert(frame, values[name], field, node.span) if name in values else default_value(field)
        for name, field in type_.fields
    ]
    return ir.Aggregate(tuple(complete), type_)
