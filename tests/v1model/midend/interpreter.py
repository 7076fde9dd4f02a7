"""A small reference interpreter of the IR's controls and parsers: what the middle end's output means.

Scalars are ints; structs and headers are dicts (a header's validity under VALID); a stack is a list of
headers, its nextIndex in `Machine.next_index`. Tables match their const entries exactly or by mask.
"""

from __future__ import annotations

import copy
from typing import Any

from v1model import ir
from v1model.midend.fold import wrap

VALID = "$valid"


class Left(Exception):
    """A Leave on its way to its Block."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label


def blank(type_: ir.Type) -> Any:
    """The zero value of a type; headers are invalid."""
    match type_:
        case ir.Struct(fields=fields) | ir.Union(fields=fields):
            return {name: blank(field) for name, field in fields}
        case ir.Header(fields=fields):
            return {VALID: False, **{name: blank(field) for name, field in fields}}
        case ir.Stack(element=element, size=size):
            return [blank(element) for _ in range(size)]
        case _:
            return 0


class Machine:
    """Runs one block of a program on headers and metadata that a test has set."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.variables: dict[str, Any] = {
            "headers": blank(program.headers),
            "metadata": blank(program.metadata),
            "standard_metadata": blank(program.standard_metadata),
        }
        self.tables = {table.name: table for table in program.tables}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []  # extern calls, with their arguments' values
        self.next_index: dict[str, int] = {}

    @property
    def headers(self) -> Any:
        return self.variables["headers"]

    @property
    def metadata(self) -> Any:
        return self.variables["metadata"]

    def control(self, name: str = "ingress") -> Machine:
        control: ir.Control = getattr(self.program, name)
        self.variables |= {local.name: blank(local.type) for local in control.locals}
        self.run(control.body)
        return self

    def parse(self, packet: bytes) -> str:
        """Runs the parser; `accept` or `reject`."""
        parser = self.program.parser
        self.variables |= {local.name: blank(local.type) for local in parser.locals}
        self.bits, self.left = int.from_bytes(packet, "big"), 8 * len(packet)
        states = {state.name: state for state in parser.states}
        name = parser.start
        try:
            while name in states:
                self.run(states[name].body)
                name = self.transition(states[name].transition)
        except EOFError:
            return "reject"
        return name

    def transition(self, transition: ir.Transition) -> str:
        values = [self.value(expression) for expression in transition.expressions]
        for matches, target in transition.cases:
            if all(m is None or self.selects(m, value) for m, value in zip(matches, values, strict=True)):
                return target
        return "reject"

    def selects(self, match: ir.SelectMatch, value: int) -> bool:
        if match.value_expr is not None:
            return bool(value == self.value(match.value_expr))
        if match.high is not None:
            return match.value <= value <= match.high
        return match.value == (value if match.mask is None else value & match.mask)

    # --- statements ---

    def run(self, body: tuple[ir.Stmt, ...]) -> None:
        for statement in body:
            self.step(statement)

    def step(self, statement: ir.Stmt) -> None:
        match statement:
            case ir.Assign(target=target, value=value):
                self.store(target, copy.deepcopy(self.value(value)))
            case ir.SetValid(header=ir.Member(base=base, field=field), valid=True) if isinstance(
                base.type, ir.Union
            ):
                for name, header in self.value(base).items():
                    header[VALID] = name == field
            case ir.SetValid(header=header, valid=valid):
                self.value(header)[VALID] = valid
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.run(then if self.value(condition) else otherwise)
            case ir.Switch(subject=subject, cases=cases, default=default):
                value = self.value(subject)
                self.run(
                    next((body for values, body in cases if value in [v.value for v in values]), default)
                )
            case ir.Block(label=label, body=body):
                try:
                    self.run(body)
                except Left as left:
                    if left.label != label:
                        raise
            case ir.Leave(label=label):
                raise Left(label)
            case ir.Loop(body=body):
                for _ in range(10_000):
                    self.run(body)
                raise AssertionError("an endless loop")
            case ir.ApplyTable():
                self.apply(statement)
            case ir.Extract(target=target, header=header):
                self.extract(target, header)
            case ir.ExternCall(instance=instance, name=name, arguments=arguments):
                self.calls.append(
                    (f"{instance}.{name}" if instance else name, tuple(map(self.value, arguments)))
                )
            case ir.Shift(stack=stack, count=count):
                self.shift(self.value(stack), count, stack)
            case _:
                raise NotImplementedError(statement)

    def shift(self, elements: list[Any], count: int, stack: ir.Expr) -> None:
        assert isinstance(stack.type, ir.Stack)
        for _ in range(abs(count)):
            elements.insert(0 if count > 0 else len(elements), blank(stack.type.element))
            del elements[-1 if count > 0 else 0]

    def apply(self, statement: ir.ApplyTable) -> None:
        table = self.tables[statement.table]
        keys = [self.value(key.expression) for key in table.keys]
        matching = [entry for entry in table.entries if all(map(_matches, entry.matches, keys))]
        matching.sort(key=lambda entry: -(entry.priority or 0))
        call = matching[0].action if matching else table.default_action
        if statement.hit is not None:
            self.variables[statement.hit.name] = int(bool(matching))
        position = [action.action for action in table.actions].index(call.action)
        if statement.action is not None:
            self.variables[statement.action.name] = position
        params = next(a.params for a in self.program.actions if a.name == call.action)
        for parameter, argument in zip(params, call.arguments, strict=True):
            self.variables[f"${parameter.name}"] = argument
        self.run(table.actions[position].body)

    def extract(self, target: ir.Expr | None, header: ir.Header) -> None:
        value = blank(header)
        value[VALID] = True
        for name, field in header.fields:
            assert isinstance(field, ir.Bits)
            if field.width > self.left:
                raise EOFError
            self.left -= field.width
            value[name] = (self.bits >> self.left) & ((1 << field.width) - 1)
        if isinstance(target, ir.StackNext):
            elements, key = self.value(target.base), str(target.base)
            elements[self.next_index.setdefault(key, 0)].update(value)
            self.next_index[key] += 1
        elif target is not None:
            self.value(target).update(value)

    def store(self, target: ir.Expr, value: Any) -> None:
        match target:
            case ir.Var(name=name):
                self.variables[name] = value
            case ir.Member(base=base, field=field):
                self.value(base)[field] = value
            case ir.Index(base=base, index=index):
                elements, position = self.value(base), self.value(index)
                if position < len(elements):
                    elements[position] = value
            case ir.Slice(base=base, high=high, low=low):
                mask = ((1 << (high - low + 1)) - 1) << low
                assert isinstance(base.type, ir.Bits)
                self.store(base, wrap((self.value(base) & ~mask) | (value << low & mask), base.type))
            case _:
                raise NotImplementedError(target)

    # --- expressions ---

    def value(self, expression: ir.Expr) -> Any:
        match expression:
            case ir.Const(value=value):
                return value
            case ir.Var(name=name):
                return self.variables[name]
            case ir.Member(base=base, field=field):
                return self.value(base)[field]
            case ir.Index(base=base, index=index):
                elements, position = self.value(base), self.value(index)
                return elements[position] if position < len(elements) else blank(expression.type)
            case ir.Slice(base=base, high=high, low=low):
                return (self.value(base) >> low) & ((1 << (high - low + 1)) - 1)
            case ir.IsValid(base=base):
                value = self.value(base)
                return int(value[VALID] if VALID in value else any(h[VALID] for h in value.values()))
            case ir.Unary(operator=operator, operand=operand):
                value = self.value(operand)
                return (
                    int(not value)
                    if operator == "!"
                    else wrap({"-": -value, "~": ~value}[operator], expression.type)
                )
            case ir.Binary():
                return self.binary(expression)
            case ir.Ternary(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case ir.Cast(operand=operand, type=type_):
                return wrap(self.value(operand), type_)
            case ir.Aggregate():
                return self.aggregate(expression)
            case ir.Lookahead(type=ir.Bits(width=width)):
                if width > self.left:
                    raise EOFError
                return (self.bits >> (self.left - width)) & ((1 << width) - 1)
            case _:
                raise NotImplementedError(expression)

    def aggregate(self, expression: ir.Aggregate) -> Any:
        values = [copy.deepcopy(self.value(value)) for value in expression.values]
        if isinstance(expression.type, ir.Stack):
            rest = blank(expression.type)
            return values + rest[len(values) :]
        result = blank(expression.type)
        if expression.valid and values:
            assert isinstance(expression.type, ir.Struct | ir.Header)
            result |= {name: value for (name, _), value in zip(expression.type.fields, values, strict=True)}
            if isinstance(expression.type, ir.Header):
                result[VALID] = True
        return result

    def binary(self, expression: ir.Binary) -> int:
        op = expression.operator
        left = self.value(expression.left)
        if op in ("&&", "||") and bool(left) == (op == "||"):
            return int(left)
        right = self.value(expression.right)
        match op:
            case "&&" | "||":
                return int(right)
            case "==" | "!=":
                return int((_comparable(left) == _comparable(right)) == (op == "=="))
            case "<" | "<=" | ">" | ">=":
                return int(
                    {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]
                )
            case "++":
                assert isinstance(expression.right.type, ir.Bits)
                width = expression.right.type.width
                return wrap((left << width) | (right & ((1 << width) - 1)), expression.type)
            case "|+|":
                assert isinstance(expression.type, ir.Bits)
                return int(min(left + right, (1 << expression.type.width) - 1))
            case _:
                results = {"+": left + right, "-": left - right, "*": left * right, "&": left & right}
                results |= {"|": left | right, "^": left ^ right}
                results |= {"<<": left << min(right, 4096), ">>": left >> right} if op in ("<<", ">>") else {}
                return wrap(results[op], expression.type)


def _comparable(value: Any) -> Any:
    """What equality looks at: all invalid headers are equal."""
    if isinstance(value, dict):
        if value.get(VALID) is False:
            return VALID
        return {name: _comparable(field) for name, field in value.items()}
    return [_comparable(element) for element in value] if isinstance(value, list) else value


def _matches(match: ir.KeyMatch | None, value: int) -> bool:
    if match is None:
        return True
    if match.high is not None:
        return match.value <= value <= match.high
    return match.value == (value if match.mask is None else value & match.mask)
