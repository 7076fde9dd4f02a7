"""Statements: control flow becomes labelled blocks, and variables get unique names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.midend import fold
from v1model.midend.frame import as_index, lowers
from v1model.midend.tables import switch_subject
from v1model.midend.values import assign, convert, default_value, reset

if TYPE_CHECKING:
    from collections.abc import Callable

    from v1model.midend.frame import Frame


@lowers(ast.Block)
def _block(frame: Frame, node: ast.Block) -> None:
    for position, statement in enumerate(node.statements):
        if frame.builder.ended():
            _lower_unreachable(frame, node.statements[position:])
            return
        frame.statement(statement)


def _lower_unreachable(frame: Frame, statements: list[ast.Statement]) -> None:
    """Lower unreachable statements and discard them.

    As in p4c, the control plane sees all applied tables and called actions, even those after an `exit`.
    """
    with frame.builder.collect():
        for statement in statements:
            frame.statement(statement)


@lowers(ast.Empty)
def _empty(_frame: Frame, _node: ast.Empty) -> None:
    pass


@lowers(ast.CallStatement)
def _call(frame: Frame, node: ast.CallStatement) -> None:
    frame.expression(node.call)


@lowers(ast.Assignment)
def _assignment(frame: Frame, node: ast.Assignment) -> None:
    target = frame.expression(node.target)
    before = len(frame.builder.out)
    value = frame.expression(node.value)
    if len(frame.builder.out) > before:
        target = frame.builder.pinned_at(before, target)
    if node.operator:
        operand = as_index(value) if node.operator in ("<<", ">>") else value
        if node.operator not in ("<<", ">>", "++"):
            operand = convert(frame, operand, target.type, node.value.span)
        value = fold.binary(node.operator, target, operand, target.type, node.span)
    assign(frame, target, convert(frame, value, target.type, node.value.span))


@lowers(ast.DeclarationStatement)
def _declaration(frame: Frame, node: ast.DeclarationStatement) -> None:
    declaration = node.declaration
    if isinstance(declaration, ast.ConstantDeclaration):
        frame.scope.bindings[declaration] = frame.constant_value(declaration)
    elif isinstance(declaration, ast.VariableDeclaration):
        _variable(frame, declaration)
    else:
        raise UnsupportedError("an instance declared among statements", node.span)


def _variable(frame: Frame, declaration: ast.VariableDeclaration) -> None:
    """Lower the declaration of a local.

    One that is reached again (in a loop, or a control applied twice) stays the same variable, because tables
    may refer to it, and is reset.
    """
    shape = frame.shape_of(declaration.type_ref)
    value = None
    if isinstance(declaration.value, ast.DefaultExpression):
        value = default_value(shape)
    elif declaration.value is not None:
        value = convert(frame, frame.expression(declaration.value), shape, declaration.span)
    variable = frame.scope.bindings.get(declaration)
    if not isinstance(variable, ir.Var):
        variable = frame.builder.local(declaration.name, shape)
        frame.scope.bindings[declaration] = variable
    if value is None:
        frame.emit(*reset(variable))
    else:
        assign(frame, variable, value)


@lowers(ast.If)
def _if(frame: Frame, node: ast.If) -> None:
    condition = frame.expression(node.condition)
    if isinstance(condition, ir.Const):
        taken = node.then if condition.value else node.otherwise
        if taken is not None:
            frame.statement(taken)
        return
    with frame.builder.collect() as then:
        frame.statement(node.then)
    with frame.builder.collect() as otherwise:
        if node.otherwise is not None:
            frame.statement(node.otherwise)
    if then or otherwise:
        frame.emit(ir.If(condition, tuple(then), tuple(otherwise)))


def _subject(frame: Frame, node: ast.Switch) -> tuple[ir.Expr, Callable[[ast.Expression], ir.Const]]:
    """Return the subject of a switch, and a function that returns the value of a label."""
    if node.on_action:
        return switch_subject(frame, node.subject)
    subject = frame.expression(node.subject)

    def label_value(label: ast.Expression) -> ir.Const:
        value = convert(frame, frame.expression(label), subject.type, label.span)
        if not isinstance(value, ir.Const):
            raise CompileError("a switch's label must be known at compile time", label.span)
        return value

    return subject, label_value


@lowers(ast.Switch)
def _switch(frame: Frame, node: ast.Switch) -> None:
    """Lower a switch without fall-through: labels without a body belong to the next case."""
    subject, label_value = _subject(frame, node)
    cases: list[tuple[tuple[ir.Const, ...], tuple[ir.Stmt, ...]]] = []
    default: tuple[ir.Stmt, ...] = ()
    labels: list[ast.Expression] = []
    for case in node.cases:
        labels += case.labels
        if case.body is None:
            continue
        with frame.builder.collect() as body:
            frame.statement(case.body)
        if any(isinstance(label, ast.DefaultExpression) for label in labels):
            default = tuple(body)
        else:
            cases.append((tuple(label_value(label) for label in labels), tuple(body)))
        labels = []
    frame.emit(ir.Switch(subject, tuple(cases), default))


@lowers(ast.Return)
def _return(frame: Frame, node: ast.Return) -> None:
    if node.value is not None:
        value = frame.expression(node.value)
        if frame.result is not None:
            assign(frame, frame.result, convert(frame, value, frame.result.type, node.span))
        elif isinstance(value.type, ir.String):
            _return_string(frame, value, node)
    frame.emit(ir.Leave(frame.return_label))


def _return_string(frame: Frame, value: ir.Expr, node: ast.Return) -> None:
    """Record the string that a function returns: it must be known, and the same for every `return`."""
    if not isinstance(value, ir.Const) or frame.string not in (None, value):
        raise UnsupportedError("a function whose string is not known at compile time", node.span)
    frame.string = value


@lowers(ast.Exit)
def _exit(frame: Frame, _node: ast.Exit) -> None:
    frame.exit()


@lowers(ast.Break)
def _break(frame: Frame, node: ast.Break) -> None:
    if not frame.break_labels:
        raise CompileError("break outside of a loop", node.span)
    frame.emit(ir.Leave(frame.break_labels[-1]))


@lowers(ast.Continue)
def _continue(frame: Frame, node: ast.Continue) -> None:
    if not frame.continue_labels:
        raise CompileError("continue outside of a loop", node.span)
    frame.emit(ir.Leave(frame.continue_labels[-1]))


def _loop_body(frame: Frame, body: ast.Statement, end: str) -> None:
    """Lower one iteration of a loop, in which `break` jumps to `end`."""
    again = frame.builder.fresh_name("continue")
    frame.break_labels.append(end)
    frame.continue_labels.append(again)
    with frame.builder.collect() as statements:
        frame.statement(body)
    frame.break_labels.pop()
    frame.continue_labels.pop()
    frame.builder.emit_block(again, statements)


@lowers(ast.For)
def _for(frame: Frame, node: ast.For) -> None:
    for statement in node.initial:
        frame.statement(statement)
    end = frame.builder.fresh_name("break")
    with frame.builder.collect() as round_:
        condition = frame.expression(node.condition)
        frame.emit(ir.If(fold.unary("!", condition, ir.Bool()), (ir.Leave(end),)))
        _loop_body(frame, node.body, end)
        if not frame.builder.ended():
            for statement in node.update:
                frame.statement(statement)
    frame.emit(ir.Block(end, (ir.Loop(tuple(round_)),)))


@lowers(ast.ForIn)
def _for_in(frame: Frame, node: ast.ForIn) -> None:
    collection = node.collection
    if isinstance(collection, ast.Binary) and collection.operator == "..":
        _for_range(frame, node, collection)
        return
    shape = frame.shape_of(node.variable.type_ref)
    end = frame.builder.fresh_name("break")
    with frame.builder.collect() as rounds:
        for element in _elements(frame, collection):
            variable = _loop_variable(frame, node, shape)
            assign(frame, variable, convert(frame, element, shape, collection.span))
            _loop_body(frame, node.body, end)
    frame.builder.emit_block(end, rounds)


def _loop_variable(frame: Frame, node: ast.ForIn, shape: ir.Type) -> ir.Var:
    variable = frame.scope.bindings.get(node.variable)
    if not isinstance(variable, ir.Var):
        variable = frame.builder.local(node.variable.name, shape)
        frame.scope.bindings[node.variable] = variable
    return variable


def _elements(frame: Frame, collection: ast.Expression) -> list[ir.Expr]:
    """Return the elements of a stack, or of a list that is known at compile time."""
    if isinstance(collection, ast.Name) and isinstance(collection.declaration, ast.ConstantDeclaration):
        return _elements(frame, collection.declaration.value)
    if isinstance(collection, ast.Cast):
        return _elements(frame, collection.operand)
    if isinstance(collection, ast.ListExpression):
        return frame.in_order(collection.elements)
    stack = frame.expression(collection)
    if not isinstance(stack.type, ir.Stack):
        raise UnsupportedError("`for` over anything but a range, a stack or a list", collection.span)
    return [ir.Index(stack, fold.bits(i, ir.Bits(32)), stack.type.element) for i in range(stack.type.size)]


def _for_range(frame: Frame, node: ast.ForIn, collection: ast.Binary) -> None:
    """Lower for (v in low .. high), which counts in a variable of its own and never past the end."""
    shape = frame.shape_of(node.variable.type_ref)
    low, high = frame.in_order([collection.left, collection.right])
    counter = frame.builder.local(f"{node.variable.name}_next", shape)
    frame.emit(ir.Assign(counter, convert(frame, low, shape, collection.left.span)))
    last = frame.save(convert(frame, high, shape, collection.right.span), f"{node.variable.name}_last")
    variable = _loop_variable(frame, node, shape)
    end = frame.builder.fresh_name("break")
    with frame.builder.collect() as round_:
        frame.emit(ir.Assign(variable, counter))
        _loop_body(frame, node.body, end)
        frame.emit(ir.If(ir.Binary("==", counter, last, ir.Bool()), (ir.Leave(end),)))
        frame.emit(ir.Assign(counter, fold.binary("+", counter, fold.bits(1, shape), shape)))
    body = ir.Block(end, (ir.Loop(tuple(round_)),))
    frame.emit(ir.If(ir.Binary("<=", counter, last, ir.Bool()), (body,)))
