"""State of lowering: the block under construction, and the activation that is being lowered.

Rules for each kind of AST node register themselves (`@lowers(ast.If)`). So expressions, calls and statements
can use each other through a Frame without importing each other.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from v1model import ir
from v1model.errors import CompileError, UnsupportedError, located
from v1model.frontend import ast
from v1model.midend.fold import TRUE
from v1model.midend.scope import Binding, Scope
from v1model.midend.shapes import INDEX, INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from v1model.frontend import types as t
    from v1model.midend.unit import Unit

SHARED = ("headers", "metadata", "standard_metadata")
MAX_INLINING_DEPTH = 64
# Nested calls multiply: a function that calls the one before it twice, eighteen times over.
MAX_FRAMES = 1 << 12
MAX_LOWERED_NODES = 1 << 17

_rules: dict[type[ast.Node], Callable[[Frame, Any], Any]] = {}
Rule = Any


def lowers(*nodes: type[ast.Node]) -> Callable[[Rule], Rule]:
    """Return a decorator that registers the rule for AST nodes.

    An expression's rule returns an ir.Expr, a statement's None.
    """

    def register(rule: Rule) -> Rule:
        for node in nodes:
            _rules[node] = rule
        return rule

    return register


class Builder:
    """Program block under construction: its locals, and the growing list of statements."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.out: list[ir.Stmt] = []
        self.locals: list[ir.Var] = []
        self.is_parser = False
        self.exited: ir.Var | None = None
        self._taken: dict[str, int] = dict.fromkeys(SHARED, 0)
        self._temporaries: set[str] = set()

    def fresh_name(self, name: str) -> str:
        count = self._taken.get(name)
        self._taken[name] = 0 if count is None else count
        if count is None:
            return name
        while True:
            self._taken[name] += 1
            candidate = f"{name}_{self._taken[name]}"
            if candidate not in self._taken:
                self._taken[candidate] = 0
                return candidate

    def local(self, name: str, type_: ir.Type) -> ir.Var:
        if _holds_string(type_):
            raise UnsupportedError("a string that is not known at compile time")
        variable = ir.Var(self.fresh_name(name), type_)
        self.locals.append(variable)
        return variable

    def temporary(self, type_: ir.Type, name: str = "tmp") -> ir.Var:
        """Return a local that no user's statement can change."""
        variable = self.local(name, type_)
        self._temporaries.add(variable.name)
        return variable

    def exit_flag(self) -> ir.Var:
        """Return the variable that says whether a table's action executed `exit`."""
        if self.exited is None:
            self.exited = self.temporary(ir.Bool(), "exited")
        return self.exited

    def is_temporary(self, value: ir.Expr) -> bool:
        while isinstance(value, ir.Member | ir.Index):
            value = value.base
        return isinstance(value, ir.Var) and value.name in self._temporaries

    def saved_at(self, position: int, value: ir.Expr) -> ir.Expr:
        """Return `value` as it was when the statement list had `position` statements."""
        if isinstance(value, ir.Const) or (isinstance(value, ir.Var) and value.name in self._temporaries):
            return value
        variable = self.temporary(value.type)
        self.out.insert(position, ir.Assign(variable, value))
        return variable

    def pinned_at(self, position: int, target: ir.Expr) -> ir.Expr:
        """Return the l-value `target` with its indices as they were at `position`."""
        match target:
            case ir.Member(base=base):
                return replace(target, base=self.pinned_at(position, base))
            case ir.Index(base=base, index=index):
                pinned = self.pinned_at(position, base)
                return replace(target, base=pinned, index=self.saved_at(position, index))
            case ir.Slice(base=base) | ir.StackNext(base=base) | ir.StackLast(base=base):
                return replace(target, base=self.pinned_at(position, base))
            case _:
                return target

    def emit(self, *statements: ir.Stmt) -> None:
        self.out.extend(statements)

    @contextmanager
    def collect(self) -> Iterator[list[ir.Stmt]]:
        """Collect the statements that are emitted in the block in the yielded list."""
        saved, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = saved

    def ended(self) -> bool:
        """Return whether following statements cannot be reached."""
        return bool(self.out) and isinstance(self.out[-1], ir.Leave)

    def emit_block(self, label: str, body: list[ir.Stmt]) -> None:
        """Emit `body` as a Block, or without one if nothing leaves it early."""
        if body and body[-1] == ir.Leave(label):
            body = body[:-1]
        if leaves(body, label):
            self.emit(ir.Block(label, tuple(body)))
        else:
            self.emit(*body)


def _holds_string(type_: ir.Type) -> bool:
    if isinstance(type_, ir.Struct):
        return any(_holds_string(field) for _, field in type_.fields)
    return isinstance(type_, ir.String)


def leaves(body: list[ir.Stmt] | tuple[ir.Stmt, ...], label: str) -> bool:
    """Return whether a Leave(label) occurs in `body`."""
    return any(
        statement == ir.Leave(label) or any(leaves(inner, label) for inner in nested(statement))
        for statement in body
    )


def nested(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """Return the statement lists inside a statement."""
    match statement:
        case ir.If(then=then, otherwise=otherwise):
            return (then, otherwise)
        case ir.Switch(cases=cases, default=default):
            return (*(body for _, body in cases), default)
        case ir.Block(body=body) | ir.Loop(body=body):
            return (body,)
        case _:
            return ()


@dataclass(eq=False, slots=True)
class Frame:
    """Activation of a block, or of a control, function or action that is inlined into it.

    `copy_out` runs when it is left, and `return_label` is the target of `return`. `exit` runs the copy_out of
    every frame up to the one that has an `exit_label`.
    """

    unit: Unit
    builder: Builder
    scope: Scope
    caller: Frame | None = None
    return_label: str = ""
    exit_label: str = ""
    in_table: bool = False  # a table's action: `exit` continues where the table is applied
    result: ir.Var | None = None
    string: ir.Const | None = None  # result of a function of type string
    copy_out: list[ir.Stmt] = field(default_factory=list)
    break_labels: list[str] = field(default_factory=list)
    continue_labels: list[str] = field(default_factory=list)
    depth: int = 0

    def inner(self, scope: Scope, call: ast.Node) -> Frame:
        """Return the frame of a callee."""
        self.unit.frames += 1
        if self.unit.frames > MAX_FRAMES:
            raise UnsupportedError(f"more than {MAX_FRAMES} calls and instances to inline", call.span)
        if self.depth >= MAX_INLINING_DEPTH:
            message = f"calls nested deeper than {MAX_INLINING_DEPTH} levels (recursion?)"
            raise UnsupportedError(message, call.span)
        return Frame(self.unit, self.builder, scope, self, depth=self.depth + 1)

    def find(self, declaration: ast.Declaration) -> Binding:
        """Return the binding of a name; instances and constants of the top level are made at first use."""
        return self.scope.find(declaration) or self.unit.top_level(declaration)

    def type_of(self, node: ast.Expression) -> t.Type:
        assert node.type is not None, node
        return self.scope.closed(node.type)

    def shape(self, node: ast.Expression) -> ir.Type:
        return self.unit.shapes.of(self.type_of(node), node.span)

    def shape_of(self, ref: ast.TypeRef) -> ir.Type:
        assert ref.resolved is not None, ref
        return self.unit.shapes.of(self.scope.closed(ref.resolved), ref.span)

    def expression(self, node: ast.Expression) -> ir.Expr:
        """Return the value of an expression; its side effects are emitted before."""
        value: ir.Expr = self._rule(node)(self, node)
        return value

    def statement(self, node: ast.Statement) -> None:
        with located(node.span):
            self._rule(node)(self, node)

    def _rule(self, node: ast.Node) -> Callable[[Frame, Any], Any]:
        rule = _rules.get(type(node))
        if rule is None:
            raise UnsupportedError(f"{type(node).__name__} is not supported here", node.span)
        self.unit.lowered_nodes += 1
        if self.unit.lowered_nodes > MAX_LOWERED_NODES:
            message = f"more than {MAX_LOWERED_NODES} statements and expressions once calls are inlined"
            raise UnsupportedError(message, node.span)
        return rule

    def constant(self, node: ast.Expression, what: str) -> int:
        """Return the value of an expression that must be known at compile time."""
        value = self.expression(node)
        if not isinstance(value, ir.Const) or not isinstance(value.value, int):
            raise CompileError(f"{what} must be known at compile time", node.span)
        return value.value

    def constant_value(self, declaration: ast.ConstantDeclaration) -> ir.Expr:
        """Return the value of a `const`, in its declared type."""
        with self.builder.collect() as effects:
            value = self.expression(declaration.value)
        if effects:
            raise CompileError(f"{declaration.name} must be known at compile time", declaration.span)
        return value

    def emit(self, *statements: ir.Stmt) -> None:
        self.builder.emit(*statements)

    def save(self, value: ir.Expr, name: str = "tmp") -> ir.Var:
        """Return `value` in a new local that nothing else assigns."""
        variable = self.builder.temporary(value.type, name)
        self.emit(ir.Assign(variable, value))
        return variable

    def in_order(self, nodes: list[ast.Expression]) -> list[ir.Expr]:
        """Return values evaluated from left to right; those that later side effects may change are saved."""
        values: list[ir.Expr] = []
        for node in nodes:
            before = len(self.builder.out)
            value = self.expression(node)
            if len(self.builder.out) > before:
                values = [self.builder.saved_at(before, earlier) for earlier in values]
            values.append(value)
        return values

    def exit(self) -> None:
        """Leave everything up to the frame with an exit label, copying out on the way."""
        frame: Frame | None = self
        while frame is not None:
            self.emit(*frame.copy_out)
            if frame.exit_label:
                if frame.in_table:
                    self.emit(ir.Assign(self.builder.exit_flag(), TRUE))
                self.emit(ir.Leave(frame.exit_label))
                return
            frame = frame.caller
        raise AssertionError("exit outside a control")


def as_index(value: ir.Expr) -> ir.Expr:
    """Return a compile-time integer as the bit<32> of indices and lengths; other values unchanged."""
    if value.type == INTEGER and isinstance(value, ir.Const):
        return ir.Const(value.value, INDEX)
    return value
