"""The C functions of a program's six blocks, and those that run after a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.backend import tables, tracing, wire
from v1model.backend.expressions import Expressions
from v1model.backend.function import Function
from v1model.backend.layout import is_wide, value_width, wire_bytes
from v1model.backend.names import comment, identifier
from v1model.backend.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from v1model.backend.unit import Unit

PIPELINE = ("ingress", "egress")
ARGUMENTS = "struct vswitch *sw, struct job *job, struct phv *p"


def control(unit: Unit, name: str, block: ir.Control) -> list[str]:
    """Return static void p4_<name>(sw, job, p) of a control."""
    function = Function(unit, f"static void p4_{name}({ARGUMENTS})")
    if name in PIPELINE:
        tracing.step(Statements(function), "control", name)
    _control_body(function, block)
    function.label("done")
    function.emit("(void)sw, (void)job, (void)p;")
    return function.text()


def deparser(unit: Unit, block: ir.Control) -> list[str]:
    """Return static uint32_t p4_deparse(sw, job, p, out), which returns the bytes appended to `out`."""
    function = Function(unit, f"static uint32_t p4_deparse({ARGUMENTS}, uint8_t *out)")
    function.emit("const uint8_t *start = out;")
    _control_body(function, block)
    function.label("done")
    function.emit("(void)sw, (void)job, (void)p;", "return (uint32_t)(out - start);")
    return function.text()


def _control_body(function: Function, block: ir.Control) -> None:
    for variable in block.locals:
        function.declare(variable)
    Statements(function).body(block.body)


def parser(unit: Unit, block: ir.Parser) -> list[str]:
    """Return static void p4_parse(sw, job, p), which sets headers, job->payload_offset and parser_error.

    States are labels. States on a cycle are counted, so that no packet stays in the parser for ever.
    """
    function = Function(unit, f"static void p4_parse({ARGUMENTS})", is_parser=True)
    for variable in block.locals:
        function.declare(variable)
    function.emit("uint32_t offset = 0, error = 0, steps = 0;")
    labels = {state.name: function.name(f"state_{identifier(state.name)}") for state in block.states}
    labels |= {"accept": "done", "reject": "done"}
    function.emit(function.goto(labels[block.start]))
    cyclic = _states_on_cycles(block)
    for state in block.states:
        function.label(labels[state.name])
        if state.name in cyclic:
            function.check("++steps > PARSER_LIMIT", "ParserTimeout")
        with function.block(""):
            statements = Statements(function)
            tracing.step(statements, "state", state.name)
            statements.body(state.body)
            _transition(statements, state.transition, labels)
    function.label("done")
    tracing.parsed(Statements(function))
    function.emit("job->payload_offset = offset;", "p->standard_metadata.f_parser_error = error;")
    function.emit("(void)sw, (void)steps;")
    return function.text()


def _states_on_cycles(block: ir.Parser) -> set[str]:
    """Return the targets of edges that lead back, found by depth-first search: every cycle has one."""
    edges = {state.name: [target for _, target in state.transition.cases] for state in block.states}
    found: set[str] = set()
    open_states: set[str] = set()
    done: set[str] = set()
    stack = [(block.start, iter(edges.get(block.start, [])))]
    open_states.add(block.start)
    while stack:
        name, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            stack.pop()
            open_states.discard(name)
            done.add(name)
        elif target in open_states:
            found.add(target)
        elif target not in done and target in edges:
            open_states.add(target)
            stack.append((target, iter(edges[target])))
    return found


def _transition(statements: Statements, transition: ir.Transition, labels: dict[str, str]) -> None:
    function = statements.function
    subjects = []
    for expression in transition.expressions:
        subject = function.temporary(expression.type)
        function.emit(statements.expressions.store(subject, expression))
        subjects.append((subject, expression.type))
    for matches, target in transition.cases:
        tests = []
        for position, match in enumerate(matches):
            if match is not None and match.value_set:
                tests.append(_is_member(statements, subjects[position:], match.value_set))
            elif match is not None:
                tests.append(_matches(statements, *subjects[position], match))
        jump = function.goto(labels[target])
        if not tests:
            function.emit(jump)
            return
        function.emit(f"if ({' && '.join(tests)}) {jump}")
    # No match: P4_16 has an error for it, simple_switch accepts.
    function.emit(function.goto("done"))


def _is_member(statements: Statements, subjects: list[tuple[str, ir.Type]], name: str) -> str:
    """Return C that tests whether the first subjects, as many as a value set has keys, are a member of it."""
    function = statements.function
    table, number = statements.unit.value_sets[name]
    key = function.name("key")
    function.emit(comment(f"value set {name}"), f"uint8_t {key}[{tables.key_bytes(table)}];")
    items = [
        wire.Item(subject, wire_bytes(value_width(value_type)) * 8)
        for (subject, value_type), _ in zip(subjects, table.keys, strict=False)
    ]
    function.emit(*wire.pack(items, key))
    return f"{tables.lookup(table, f'&sw->tables[{number}]', key)} != NULL"


def _matches(statements: Statements, subject: str, value_type: ir.Type, match: ir.SelectMatch) -> str:
    value_of = statements.expressions.value
    typed = ir.Var("subject", value_type)
    statements.function.arguments["subject"] = subject
    if match.value_expr is not None:
        return value_of(ir.Binary("==", typed, match.value_expr, ir.Bool()))
    low = ir.Const(match.value, value_type)
    if match.high is not None:
        above = ir.Binary(">=", typed, low, ir.Bool())
        below = ir.Binary("<=", typed, ir.Const(match.high, value_type), ir.Bool())
        return value_of(ir.Binary("&&", above, below, ir.Bool()))
    if match.mask is None or isinstance(value_type, ir.Bool):
        return value_of(ir.Binary("==", typed, low, ir.Bool()))
    masked = ir.Binary("&", typed, ir.Const(match.mask, value_type), value_type)
    return value_of(ir.Binary("==", masked, ir.Const(match.value & match.mask, value_type), ir.Bool()))


def keep(unit: Unit) -> list[str]:
    """Return static void p4_keep(site, to, from), which copies metadata for a clone or other call."""
    function = Function(unit, "static void p4_keep(unsigned site, struct phv *to, const struct phv *from)")
    to, source = Expressions(function, "to"), Expressions(function, "from")
    with function.block("switch (site)"):
        for number, kept in enumerate(unit.kept, start=1):
            with function.block(f"case {number}:"):
                for expression in kept:
                    function.emit(_copy(to, source, expression))
                function.emit("break;")
    function.emit("(void)to, (void)from;")
    return function.text()


def _copy(to: Expressions, source: Expressions, expression: ir.Expr) -> str:
    if is_wide(expression.type):
        return (
            f"wide_copy({to.place(expression)}, {source.value(expression)}, {value_width(expression.type)});"
        )
    return f"{to.place(expression)} = {source.value(expression)};"


def digest(unit: Unit) -> list[str]:
    """Return static void p4_digest(sw, job, p), which sends the sample of the ingress pass's last digest
    call.
    """
    function = Function(
        unit, "static void p4_digest(struct vswitch *sw, const struct job *job, struct phv *p)"
    )
    expressions = Expressions(function)
    with function.block("switch (job->digest_site)"):
        for site, (number, leaves) in enumerate(unit.digest_calls, start=1):
            with function.block(f"case {site}:"):
                function.emit(f"uint8_t sample[{max(1, sample_bytes(leaves))}];")
                items = [_sample_item(function, expressions, leaf) for leaf in leaves]
                function.emit(*wire.pack(items, "sample"), f"emit_digest(sw, {number}, sample);", "break;")
    function.emit("(void)sw, (void)p;")
    return function.text()


def _sample_item(function: Function, expressions: Expressions, leaf: ir.Expr) -> wire.Item:
    if isinstance(leaf, ir.Var) and leaf.name.startswith("p->"):
        function.arguments[leaf.name] = leaf.name
    return wire.Item(expressions.value(leaf), wire_bytes(value_width(leaf.type)) * 8)


def sample_bytes(leaves: Sequence[ir.Expr]) -> int:
    """Return the bytes of a digest sample, in which every field is big-endian in whole bytes."""
    return sum(wire_bytes(value_width(leaf.type)) for leaf in leaves)
