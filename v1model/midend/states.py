"""Parsers: states with sub-parsers inlined, and the matches of their transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.errors import CompileError, UnsupportedError
from v1model.frontend import ast
from v1model.midend import fold
from v1model.midend.inline import bind_arguments
from v1model.midend.instances import applied_instance
from v1model.midend.scope import ParserInstance, ValueSetObject
from v1model.midend.values import convert

if TYPE_CHECKING:
    from v1model.midend.frame import Frame


class StateBuilder:
    """Collector of the states of a parser and of the sub-parsers inlined into it."""

    def __init__(self) -> None:
        self.states: list[ir.State] = []

    def parser(self, frame: Frame, instance: ParserInstance, accept: str) -> str:
        """Add the states of a parser whose parameters are bound; returns the name of its start state.

        Its locals are initialised at the frame's present place.
        """
        declaration = instance.declaration
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                frame.statement(ast.DeclarationStatement(local.span, local))
        states = declaration.states or []
        names = {state.name: frame.builder.fresh_name(state.name) for state in states}
        targets = {**names, "accept": accept, "reject": "reject"}
        if "start" not in names:
            raise CompileError(f"parser {declaration.name} has no start state", declaration.span)
        for state in states:
            _State(self, frame, names[state.name], targets).build(state)
        return names["start"]


class _State:
    """State under construction: an apply of a sub-parser ends it and begins another."""

    def __init__(self, parser: StateBuilder, frame: Frame, name: str, targets: dict[str, str]) -> None:
        self.parser, self.frame, self.name, self.targets = parser, frame, name, targets

    def build(self, declaration: ast.StateDeclaration) -> None:
        builder = self.frame.builder
        with builder.collect():
            self._statements(declaration.statements)
            transition = self._transition(declaration.transition)
            self._finish(transition)

    def _finish(self, transition: ir.Transition) -> None:
        out = self.frame.builder.out
        self.parser.states.append(ir.State(self.name, tuple(out), transition))
        out.clear()

    def _statements(self, statements: list[ast.Statement]) -> None:
        for statement in statements:
            if isinstance(statement, ast.Block):
                self._statements(statement.statements)
            elif isinstance(statement, ast.CallStatement) and statement.call.kind == "apply":
                self._sub_parser(statement.call)
            else:
                self.frame.statement(statement)

    def _sub_parser(self, call: ast.Call) -> None:
        instance = applied_instance(self.frame, call)
        if not isinstance(instance, ParserInstance):
            raise UnsupportedError("only parsers can be applied in a parser", call.span)
        inner = self.frame.inner(instance.scope, call)
        parameters = instance.declaration.parameters
        for parameter in parameters:
            instance.scope.bindings.pop(parameter, None)  # each apply has states of its own
        bind_arguments(self.frame, inner, parameters, call.arguments, alias=True, constants=True)
        after = self.frame.builder.fresh_name(f"{self.name}_after_{instance.declaration.name}")
        with self.frame.builder.collect() as initial:
            start = self.parser.parser(inner, instance, after)
        self.frame.emit(*initial)
        self._finish(_goto(start))
        self.name = after
        self.frame.emit(*inner.copy_out)

    def _transition(self, select: ast.Select | None) -> ir.Transition:
        if select is None:
            return _goto("reject")
        if not select.expressions:
            return _goto(self._target(select.cases[0]))
        nodes = [part for node in select.expressions for part in _parts(node)]
        values = self.frame.in_order(nodes)
        cases = []
        for case in select.cases:
            cases.append((self._matches(case, values), self._target(case)))
            if all(match is None for match in cases[-1][0]):
                break  # what follows cannot be reached
        return ir.Transition(tuple(values), tuple(cases))

    def _target(self, case: ast.SelectCase) -> str:
        target = self.targets.get(case.state)
        if target is None:
            raise CompileError(f"no state is called {case.state}", case.span)
        return target

    def _matches(self, case: ast.SelectCase, values: list[ir.Expr]) -> tuple[ir.SelectMatch | None, ...]:
        keys = [part for key in case.keys for part in _parts(key)]
        if len(keys) == 1 and isinstance(keys[0], ast.DefaultExpression):
            return (None,) * len(values)
        matches: list[ir.SelectMatch | None] = []
        for key in keys:
            if (value_set := self._value_set(key)) is not None:
                matches.append(ir.SelectMatch(value_set=value_set.name))
                matches += [None] * (len(value_set.keys) - 1)
            elif len(matches) < len(values):
                matches.append(self._match(key, values[len(matches)].type))
        if len(matches) != len(values):
            raise CompileError(f"{len(keys)} keys for {len(values)} expressions", case.span)
        return tuple(matches)

    def _value_set(self, node: ast.Expression) -> ir.ValueSet | None:
        if not isinstance(node, ast.Name) or not isinstance(node.declaration, ast.ValueSetDeclaration):
            return None
        found = self.frame.find(node.declaration)
        assert isinstance(found, ValueSetObject), node
        return found.value_set

    def _match(self, node: ast.Expression, type_: ir.Type) -> ir.SelectMatch | None:
        while isinstance(node, ast.Cast) and isinstance(node.operand, ast.Binary):
            if node.operand.operator not in ("&&&", ".."):
                break
            node = node.operand
        if isinstance(node, ast.DefaultExpression):
            return None
        if isinstance(node, ast.Binary) and node.operator == "&&&":
            value, mask = self._pattern(node.left, type_), self._pattern(node.right, type_)
            return ir.SelectMatch(value & mask, mask=mask)
        if isinstance(node, ast.Binary) and node.operator == "..":
            return ir.SelectMatch(self._pattern(node.left, type_), high=self._pattern(node.right, type_))
        with self.frame.builder.collect() as effects:
            value_expr = convert(self.frame, self.frame.expression(node), type_, node.span)
        if effects:
            raise UnsupportedError("a case that is computed by a call", node.span)
        if isinstance(value_expr, ir.Const) and isinstance(value_expr.value, int):
            return ir.SelectMatch(_unsigned(value_expr.value, type_))
        return ir.SelectMatch(value_expr=value_expr)

    def _pattern(self, node: ast.Expression, type_: ir.Type) -> int:
        value = convert(self.frame, self.frame.expression(node), type_, node.span)
        if not isinstance(value, ir.Const) or not isinstance(value.value, int):
            raise UnsupportedError("a mask or range that is not known at compile time", node.span)
        return _unsigned(value.value, type_)


def _unsigned(value: int, type_: ir.Type) -> int:
    return fold.wrap(value, ir.Bits(type_.width)) if isinstance(type_, ir.Bits) else value


def _goto(state: str) -> ir.Transition:
    return ir.Transition((), (((), state),))


def _parts(node: ast.Expression) -> list[ast.Expression]:
    """Return the elements of a tuple, which are matched one by one."""
    if isinstance(node, ast.ListExpression):
        return [part for element in node.elements for part in _parts(element)]
    return [node]
