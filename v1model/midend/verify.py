"""Verification of the IR's invariants, on which every pass after the middle end relies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.midend.frame import SHARED
from v1model.midend.shapes import INTEGER
from v1model.midend.values import operands

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PARSER_ONLY = (ir.StackNext, ir.StackLast, ir.StackLastIndex, ir.Lookahead, ir.PacketLength)
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_SAME_TYPE = frozenset(("+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^"))


class InvariantError(AssertionError):
    """The middle end made a wrong IR: a defect of the compiler, not of the program."""


def verify(program: ir.Program) -> None:
    """Raise InvariantError if types disagree, a variable is undeclared or a Leave's label does not enclose
    it.
    """
    shared = dict(zip(SHARED, (program.headers, program.metadata, program.standard_metadata), strict=True))
    tables = {table.name: table for table in program.tables}
    if len(tables) != len(program.tables):
        raise InvariantError("two tables have one name")
    _parser(program.parser, shared, tables, {value_set.name for value_set in program.value_sets})
    for control in (
        program.verify_checksum,
        program.ingress,
        program.egress,
        program.compute_checksum,
        program.deparser,
    ):
        check = _Block(control.name, control.locals, shared, tables, is_parser=False)
        check.statements(control.body, frozenset())
    actions = {action.name for action in program.actions}
    for table in program.tables:
        _table(table, actions)


def _parser(
    parser: ir.Parser, shared: Mapping[str, ir.Type], tables: dict[str, ir.Table], value_sets: set[str]
) -> None:
    check = _Block(parser.name, parser.locals, shared, tables, is_parser=True)
    names = {state.name for state in parser.states} | {"accept", "reject"}
    check.require(len(names) == len(parser.states) + 2, "two states have one name")
    check.require(parser.start in names, f"no start state {parser.start}")
    for state in parser.states:
        check.statements(state.body, frozenset())
        for expression in state.transition.expressions:
            check.expression(expression)
        for matches, target in state.transition.cases:
            check.require(target in names, f"no state {target}")
            check.require(len(matches) == len(state.transition.expressions), "as many matches as expressions")
            for match in matches:
                if match is not None and match.value_set:
                    check.require(match.value_set in value_sets, f"no value set {match.value_set}")
                if match is not None and match.value_expr is not None:
                    check.expression(match.value_expr)


def _table(table: ir.Table, actions: set[str]) -> None:
    own = [action.action for action in table.actions]
    known = len(set(own)) == len(own) and set(own) <= actions
    called = [table.default_action.action, *(entry.action.action for entry in table.entries)]
    if not known or not set(called) <= set(own):
        raise InvariantError(f"table {table.name}: an action that is unknown, twice there, or not its own")
    if any(len(entry.matches) != len(table.keys) for entry in table.entries):
        raise InvariantError(f"table {table.name}: an entry with other keys")


class _Block:
    """Checker of the statements of one program block and of the tables applied in it."""

    def __init__(
        self,
        name: str,
        variables: Iterable[ir.Var],
        shared: Mapping[str, ir.Type],
        tables: dict[str, ir.Table],
        *,
        is_parser: bool,
    ) -> None:
        self.name, self.tables, self.is_parser = name, tables, is_parser
        self.variables: dict[str, ir.Type] = dict(shared)
        for variable in variables:
            self.require(variable.name not in self.variables, f"{variable.name} is declared twice")
            self.variables[variable.name] = variable.type
        self.labels: set[str] = set()
        self.seen: set[str] = set()
        self.checked: set[int] = set()

    def require(self, condition: bool, message: str) -> None:
        if not condition:
            raise InvariantError(f"{self.name}: {message}")

    def statements(self, body: tuple[ir.Stmt, ...], labels: frozenset[str]) -> None:
        for statement in body:
            self.statement(statement, labels)

    def statement(self, statement: ir.Stmt, labels: frozenset[str]) -> None:
        match statement:
            case ir.Block(label=label, body=body):
                self.require(label not in self.labels, f"label {label} is used twice")
                self.labels.add(label)
                self.statements(body, labels | {label})
            case ir.Leave(label=label):
                self.require(label in labels, f"leave of {label}, which does not enclose it")
            case ir.Loop(body=body):
                self.statements(body, labels)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self._typed(condition, ir.Bool())
                self.statements(then, labels)
                self.statements(otherwise, labels)
            case ir.Switch(subject=subject, cases=cases, default=default):
                self.expression(subject)
                for values, body in cases:
                    self.require(all(v.type == subject.type for v in values), "a case of another type")
                    self.statements(body, labels)
                self.statements(default, labels)
            case ir.ApplyTable():
                self._apply(statement)
            case _:
                self._simple(statement)

    def _simple(self, statement: ir.Stmt) -> None:
        match statement:
            case ir.Assign(target=target, value=value):
                self.expression(target)
                self.expression(value)
                if target.type != value.type:
                    raise InvariantError(f"{self.name}: types differ in {target} = {value}")
            case ir.SetValid(header=header) | ir.Emit(value=header):
                self.expression(header)
            case ir.Extract(target=target, varbit_bits=bits):
                for part in (target, bits):
                    if part is not None:
                        self.expression(part)
            case ir.Advance(bits=bits):
                self._typed(bits, ir.Bits(32))
            case ir.Verify(condition=condition, error=error):
                self._typed(condition, ir.Bool())
                self._typed(error, ir.Bits(32))
            case ir.Shift(stack=stack):
                self.require(isinstance(stack.type, ir.Stack), "shift of something that is no stack")
                self.expression(stack)
            case ir.CustomCall(arguments=given, result=result):
                for argument in (*(value for value, _ in given), *((result,) if result else ())):
                    self.expression(argument)
            case ir.ExternCall(arguments=arguments, kept=kept):
                for argument in (*arguments, *kept):
                    self.expression(argument)

    def _apply(self, statement: ir.ApplyTable) -> None:
        table = self.tables.get(statement.table)
        if table is None:
            raise InvariantError(f"{self.name}: no table {statement.table}")
        if statement.hit is not None:
            self._typed(statement.hit, ir.Bool())
        if statement.action is not None:
            self._typed(statement.action, ir.Bits(32))
        if table.name in self.seen:
            return
        self.seen.add(table.name)
        for key in table.keys:
            self.expression(key.expression)
        for action in table.actions:
            self.statements(action.body, frozenset())
        if table.meter_target is not None:
            self.expression(table.meter_target)

    def _typed(self, expression: ir.Expr, type_: ir.Type) -> None:
        if expression.type != type_:
            raise InvariantError(f"{self.name}: {expression} is no {type_}")
        self.expression(expression)

    def expression(self, expression: ir.Expr) -> None:
        if id(expression) in self.checked:  # checked once; ids stay valid as long as the program lives
            return
        self.checked.add(id(expression))
        for operand in operands(expression):
            self.expression(operand)
        if expression.type == INTEGER:
            raise InvariantError(f"{self.name}: {expression} is a compile-time integer")
        if not self._consistent(expression):
            raise InvariantError(f"{self.name}: types that do not fit in {expression}")

    def _consistent(self, expression: ir.Expr) -> bool:
        """Return whether an expression's type fits its operands', and it is allowed in this block."""
        match expression:
            case ir.Var(name=name, type=type_):
                return name.startswith("$") or self.variables.get(name) == type_
            case ir.Binary():
                return _consistent_binary(expression)
            case ir.Ternary(condition=condition, then=then, otherwise=otherwise, type=type_):
                return condition.type == ir.Bool() and then.type == otherwise.type == type_
            case ir.Aggregate(values=values, type=ir.Struct() | ir.Header() as type_, valid=True):
                return [value.type for value in values] == [field for _, field in type_.fields]
            case ir.Member(base=base, field=field, type=type_):
                record = base.type
                return (
                    isinstance(record, ir.Struct | ir.Header | ir.Union) and (field, type_) in record.fields
                )
            case _ if isinstance(expression, _PARSER_ONLY):
                return self.is_parser
            case _:
                return True


def _consistent_binary(expression: ir.Binary) -> bool:
    left, right, op = expression.left.type, expression.right.type, expression.operator
    if op in ("&&", "||"):
        return left == right == expression.type == ir.Bool()
    if op in _COMPARISONS:
        return left == right and expression.type == ir.Bool()
    return op not in _SAME_TYPE or left == right == expression.type
