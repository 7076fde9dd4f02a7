"""Flow analysis of statements: assignments, branches, loops, calls, and code after a `return`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model.frontend import ast
from v1model.frontend.types import RecordType, Type
from v1model.frontend.warn.reads import Reads, path_of
from v1model.frontend.warn.state import Path, State, Validity, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TURNS = 8  # of a loop; knowledge only shrinks, so few are needed
MAX_DEPTH = 16  # of nested action calls


class Flow(Reads):
    """Flow analysis of one body after another. A state is None where no packet gets."""

    def __init__(self, diagnostics: Any) -> None:
        super().__init__(diagnostics)
        self._returned: list[State | None] = [None]  # states at `return` in the enclosing bodies
        self._left: list[State | None] = []  # states at `break` in the enclosing loops
        self._depth = 0

    def body(self, block: ast.Block, state: State) -> State | None:
        """Visit a body; return what is known at its end, also at each `return`."""
        self._returned.append(None)
        found = self.statement(block, state)
        return join(found, self._returned.pop())

    def statements(self, statements: list[ast.Statement], state: State | None) -> State | None:
        """Visit statements in order; warns about the first that is never reached."""
        for statement in statements:
            if state is None:
                self.warn("unreachable", "this is never reached", statement.span)
                return None
            state = self.statement(statement, state)
        return state

    def statement(self, node: ast.Statement, state: State) -> State | None:
        rule = _RULES.get(type(node))
        return rule(self, node, state) if rule else state

    # --- calls ---

    def call(self, node: ast.Call, state: State) -> State | None:
        if node.kind == "builtin":
            return self._builtin(node, state)
        found: State | None = state
        for argument in node.arguments:
            direction = argument.parameter.direction if argument.parameter else ""
            if argument.value is not None and direction != "out" and found is not None:
                found = self.read(argument.value, found)
        if found is not None and isinstance(node.declaration, ast.TableDeclaration):
            found = self._table(node.declaration, found)
        elif found is not None and isinstance(node.declaration, ast.ActionDeclaration):
            for value, parameter in _directed(node, "in", "inout"):
                if (path := path_of(value)) is not None:
                    found.copy(path, (parameter,), found.clone())
            found = self._action(node.declaration, found)
        return found and self._copied_out(node, found)

    def _copied_out(self, node: ast.Call, state: State) -> State:
        """Return what is known after a call of the places that it wrote."""
        is_extract = (
            isinstance(node.declaration, ast.FunctionDeclaration) and node.declaration.name == "extract"
        )
        after = state.clone()
        for argument, parameter in _directed(node, "out", "inout"):
            path = path_of(argument)
            if path is None:
                self._assign_part(argument, state)
            elif isinstance(node.declaration, ast.ActionDeclaration):
                state.copy((parameter,), path, after)
            else:
                state.assign(path)
                if is_extract:
                    state.validity[path] = Validity.VALID
        return state

    def _builtin(self, node: ast.Call, state: State) -> State | None:
        found: State | None = state
        for argument in node.arguments:
            if argument.value is not None and found is not None:
                found = self.read(argument.value, found)
        if found is not None and isinstance(node.callee, ast.Member) and (path := path_of(node.callee.base)):
            match node.callee.member:
                case "setValid":
                    found.validity[path] = Validity.VALID
                case "setInvalid":
                    found.validity[path] = Validity.INVALID
                case "push_front" | "pop_front":
                    found.assign(path)
        return found

    def _table(self, table: ast.TableDeclaration, state: State) -> State | None:
        """Visit the application of a table: any of its actions, and none if it has no default action."""
        before: State | None = state
        for key in table.keys:
            before = before and self.read(key.expression, before)
        if before is None:
            return None
        after = None if table.default_action is not None else before.clone()
        for reference in table.actions:
            if isinstance(reference.name.declaration, ast.ActionDeclaration):
                after = join(after, self._action(reference.name.declaration, before.clone()))
        return after

    def _action(self, action: ast.ActionDeclaration, state: State) -> State | None:
        if self._depth >= MAX_DEPTH:
            return state
        self._depth += 1
        for parameter in action.parameters:
            if parameter.direction == "out" and parameter.type_ref.resolved:
                state.declare_unset((parameter,), parameter.type_ref.resolved)
        after = self.body(action.body, state)
        self._depth -= 1
        if after is not None:
            self.check_out(action, action.parameters, after)
        return after

    def check_out(self, block: ast.Declaration, parameters: list[ast.Parameter], state: State) -> None:
        """Warn about out parameters that may not be assigned at the end of a block."""
        for parameter in parameters:
            if parameter.direction == "out" and state.unset_inside((parameter,)):
                message = f"out parameter {parameter.name!r} may not be assigned when {block.name!r} ends"
                self.warn("uninitialized-out-param", message, parameter.span)

    # --- assignments and declarations ---

    def assign(self, node: ast.Assignment, state: State) -> State | None:
        found = self.read(node.value, state)
        if found is None:
            return None
        if node.operator:
            return self.read(node.target, found)
        path = path_of(node.target)
        if path is None:
            return self._assign_part(node.target, found)
        self.check_header(node.target, found)
        _store(path, node.target.type, node.value, found)
        return found

    def _assign_part(self, target: ast.Expression, state: State) -> State | None:
        """Visit an assignment to a part of a variable: a slice counts as the whole.

        Nothing is known of stack elements chosen at run time, and of unions.
        """
        found: State | None = state
        while isinstance(target, ast.Slice | ast.Index | ast.Member) and found is not None:
            if isinstance(target, ast.Index):
                found = self.read(target.index, found)
            target = target.base
            if found is not None and (path := path_of(target)) is not None:
                self.check_header(target, found)
                found.assign(path)
                break
        return found

    def declare(self, node: ast.DeclarationStatement, state: State) -> State | None:
        return self.variable(node.declaration, state)

    def variable(self, declaration: ast.Declaration, state: State) -> State | None:
        """Visit the declaration of a variable."""
        if not isinstance(declaration, ast.VariableDeclaration) or declaration.type_ref.resolved is None:
            return state
        if declaration.value is None:
            state.declare_unset((declaration,), declaration.type_ref.resolved)
            return state
        found = self.read(declaration.value, state)
        if found is not None:
            _store((declaration,), declaration.type_ref.resolved, declaration.value, found)
        return found

    # --- branches and loops ---

    def branch(self, node: ast.If, state: State) -> State | None:
        is_true, is_false = self.condition(node.condition, state)
        then = is_true and self.statement(node.then, is_true)
        if node.otherwise is not None:
            is_false = is_false and self.statement(node.otherwise, is_false)
        return join(then, is_false)

    def switch(self, node: ast.Switch, state: State) -> State | None:
        before = self.read(node.subject, state)
        if before is None:
            return None
        labels = [label for case in node.cases for label in case.labels]
        has_default = any(isinstance(label, ast.DefaultExpression) for label in labels)
        after = None if has_default else before.clone()
        for case in node.cases:
            if case.body is not None:
                after = join(after, self.statement(case.body, before.clone()))
        return after

    def loop(self, node: ast.For, state: State) -> State | None:
        before = self.statements(node.initial, state)
        if before is None:
            return None

        def turn(start: State) -> tuple[State | None, State | None]:
            is_true, is_false = self.condition(node.condition, start)
            end = is_true and self.statement(node.body, is_true)
            return (end and self.statements(node.update, end)), is_false

        return self._turns(before, turn)

    def loop_in(self, node: ast.ForIn, state: State) -> State | None:
        before = self.read(node.collection, state)

        def turn(start: State) -> tuple[State | None, State | None]:
            return self.statement(node.body, start.clone()), start

        return before and self._turns(before, turn)

    def _turns(
        self, before: State, turn: Callable[[State], tuple[State | None, State | None]]
    ) -> State | None:
        """Visit a loop until nothing changes, and once more to warn."""
        was_silent, self.is_silent = self.is_silent, True
        self._left.append(None)
        start: State = before
        for _ in range(MAX_TURNS):
            again = join(before, turn(start.clone())[0]) or before
            if again == start:
                break
            start = again
        self.is_silent = was_silent
        self._left[-1] = None
        _, after = turn(start.clone())
        return join(after, self._left.pop())

    def leave(self, node: ast.Statement, state: State) -> None:
        """Visit `break`, `return`, `exit` or `continue`: the state at a break or return joins that after the
        loop or body.
        """
        if isinstance(node, ast.Return):
            found: State | None = state
            if node.value is not None:
                found = self.read(node.value, state)
            self._returned[-1] = join(self._returned[-1], found)
        elif isinstance(node, ast.Break) and self._left:
            self._left[-1] = join(self._left[-1], state)


def _directed(node: ast.Call, *directions: str) -> Iterator[tuple[ast.Expression, ast.Parameter]]:
    """Yield the arguments for parameters of these directions, with their parameters."""
    for argument in node.arguments:
        if argument.value is not None and argument.parameter and argument.parameter.direction in directions:
            yield argument.value, argument.parameter


def _store(path: Path, kind: Type | None, value: ast.Expression, state: State) -> None:
    """Record that a value is assigned, and what is known of the headers inside."""
    if isinstance(value, ast.Cast):
        return _store(path, kind, value.operand, state)
    before = state.clone()
    if (source := path_of(value)) is not None:
        return state.copy(source, path, before)
    state.assign(path)
    match kind, value:
        case RecordType(kind="header"), ast.InvalidExpression():
            state.validity[path] = Validity.INVALID
        case RecordType(kind="header"), ast.ListExpression() | ast.StructExpression():
            state.validity[path] = Validity.VALID
        case RecordType(kind="struct", fields=fields), ast.ListExpression(elements=elements):
            for (name, inner), element in zip(fields, elements, strict=False):
                _store((*path, name), inner, element, state)
        case RecordType(kind="struct", fields=fields), ast.StructExpression(fields=given):
            for name, inner in fields:
                if name in given:
                    _store((*path, name), inner, given[name], state)
    return None


def _block(flow: Flow, node: ast.Block, state: State) -> State | None:
    return flow.statements(node.statements, state)


def _call(flow: Flow, node: ast.CallStatement, state: State) -> State | None:
    return flow.call(node.call, state)


_RULES: dict[type[ast.Statement], Callable[[Flow, Any, State], State | None]] = {
    ast.Block: _block,
    ast.CallStatement: _call,
    ast.Assignment: Flow.assign,
    ast.DeclarationStatement: Flow.declare,
    ast.If: Flow.branch,
    ast.Switch: Flow.switch,
    ast.For: Flow.loop,
    ast.ForIn: Flow.loop_in,
    ast.Return: Flow.leave,
    ast.Exit: Flow.leave,
    ast.Break: Flow.leave,
    ast.Continue: Flow.leave,
}
