"""Flow analysis of a program's functions, controls and parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.warn.flow import Flow
from v1model.frontend.warn.state import State, join

if TYPE_CHECKING:
    from v1model.diagnostics import Diagnostics

MAX_VISITS = 16  # of a parser state, until nothing new is known there


def warn_flow(declaration: ast.Declaration, diagnostics: Diagnostics) -> None:
    """Warn about the flow through a function, control or parser."""
    flow = Flow(diagnostics)
    match declaration:
        case ast.FunctionDeclaration(body=ast.Block() as body):
            after: State | None = flow.body(body, _at_start(declaration.parameters))
        case ast.ControlDeclaration(body=ast.Block() as body):
            start = _at_start(declaration.parameters)
            after = _locals(flow, declaration.locals, start)
            after = after and flow.body(body, after)
        case ast.ParserDeclaration(states=list() as states):
            start = _at_start(declaration.parameters)
            begun = _locals(flow, declaration.locals, start)
            after = begun and _parser(flow, states, begun)
        case _:
            return
    if after is not None:
        flow.check_out(declaration, declaration.parameters, after)


def _at_start(parameters: list[ast.Parameter]) -> State:
    state = State()
    for parameter in parameters:
        if parameter.direction == "out" and parameter.type_ref.resolved is not None:
            state.declare_unset((parameter,), parameter.type_ref.resolved)
    return state


def _locals(flow: Flow, declarations: list[ast.Declaration], state: State) -> State | None:
    found: State | None = state
    for declaration in declarations:
        found = found and flow.variable(declaration, found)
    return found


def _parser(flow: Flow, states: list[ast.StateDeclaration], start: State) -> State | None:
    """Visit the states until nothing changes, then once more to warn; returns what is known at 'accept'."""
    entries: dict[str, State | None] = {"start": start}
    by_name = {state.name: state for state in states}
    flow.is_silent = True
    waiting, visits = ["start"], dict.fromkeys(by_name, 0)
    while waiting:
        name = waiting.pop()
        visits[name] += 1
        for target, known in _leave(flow, by_name[name], entries[name]):
            joined = join(entries.get(target), known)
            if target in by_name and joined != entries.get(target) and visits[target] < MAX_VISITS:
                waiting.append(target)
            entries[target] = joined
    flow.is_silent = False
    for state in states:
        if state.name not in entries:
            flow.warn("unreachable", f"no transition leads to state {state.name!r}", state.span)
        _leave(flow, state, entries.get(state.name))
    return entries.get("accept")


def _leave(flow: Flow, state: ast.StateDeclaration, start: State | None) -> list[tuple[str, State]]:
    """Return the states that follow, and what is known there."""
    if start is None:
        return []
    found = flow.statements(state.statements, start.clone())
    if found is None or state.transition is None:
        return []
    for expression in state.transition.expressions:
        found = found and flow.read(expression, found)
    return [(case.state, found) for case in state.transition.cases] if found is not None else []
