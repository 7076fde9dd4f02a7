"""Flow analysis of expressions: reads of unassigned values, and fields of headers that are not valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.types import DeclaredType, RecordType, StackType
from v1model.frontend.warn.nodes import parts
from v1model.frontend.warn.state import Path, State, Validity, join

if TYPE_CHECKING:
    from v1model.diagnostics import Diagnostics

_MESSAGES = {
    Validity.INVALID: "a field of header {} is used, which is not valid here",
    Validity.ASSUMED_INVALID: "a field of header {} is used, which is not valid here",
    Validity.MIXED: "a field of header {} is used, which may not be valid here",
}


class Reads:
    """Visitor of expressions with a State; subclasses implement `call`."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.is_silent = False  # until the analysis has converged
        self._warned: set[tuple[str, ast.Span]] = set()

    def warn(self, kind: str, message: str, span: ast.Span, hint: str = "") -> None:
        """Warn, once of each kind at a place."""
        if not self.is_silent and (kind, span) not in self._warned:
            self._warned.add((kind, span))
            self.diagnostics.warn(kind, message, span, hint)

    def call(self, node: ast.Call, state: State) -> State | None:
        """Visit a call; the flow of statements implements it."""
        raise NotImplementedError

    def read(self, node: ast.Expression, state: State) -> State | None:
        """Visit the evaluation of an expression; return None if it does not end."""
        if isinstance(node, ast.Call):
            return self.call(node, state)
        if isinstance(node, ast.Binary) and node.operator in ("&&", "||"):
            return join(*self.condition(node, state))
        if isinstance(node, ast.Name | ast.Member | ast.Index) and (path := path_of(node)) is not None:
            self._read_path(node, path, state)
            return state
        found: State | None = state
        for part in parts(node):
            if found is not None and isinstance(part, ast.Expression):
                found = self.read(part, found)
        return found

    def _read_path(self, node: ast.Expression, path: Path, state: State) -> None:
        self.check_header(node, state)
        if unset := state.unset_inside(path):
            is_partial = isinstance(node.type, RecordType) and len(unset) < len(node.type.fields)
            what = "may not be assigned as a whole here" if is_partial else "may not be assigned here"
            self.warn("uninitialized-use", f"{shown(node)} {what}", node.span)

    def check_header(self, node: ast.Expression, state: State) -> None:
        """Warn if a field of a header that is not valid is read or written."""
        if not isinstance(node, ast.Member) or not isinstance(node.base.type, RecordType):
            return
        header = path_of(node.base)
        if node.base.type.kind != "header" or header is None:
            return
        if (
            message := _MESSAGES.get(state.validity[header]) if header in state.validity else None
        ) is not None:
            hint = (
                f"check {shown(node.base)}.isValid() before, or make it valid: {shown(node.base)}.setValid()"
            )
            self.warn("invalid-header", message.format(shown(node.base)), node.base.span, hint)

    def condition(self, node: ast.Expression, state: State) -> tuple[State | None, State | None]:
        """Return what is known where a condition is true, and where it is false."""
        match node:
            case ast.Unary(operator="!"):
                is_true, is_false = self.condition(node.operand, state)
                return is_false, is_true
            case ast.Binary(operator="&&"):
                left_true, left_false = self.condition(node.left, state)
                if left_true is None:
                    return None, left_false
                right_true, right_false = self.condition(node.right, left_true)
                return right_true, join(left_false, right_false)
            case ast.Binary(operator="||"):
                left_true, left_false = self.condition(node.left, state)
                if left_false is None:
                    return left_true, None
                right_true, right_false = self.condition(node.right, left_false)
                return join(left_true, right_true), right_false
            case ast.Call(callee=ast.Member(member="isValid", base=base)) if (
                path := path_of(base)
            ) is not None:
                return _assumed(state, path)
        found = self.read(node, state)
        return (found, found.clone()) if found is not None else (None, None)


def _assumed(state: State, path: Path) -> tuple[State, State]:
    known = state.validity.get(path)
    is_valid, is_invalid = state.clone(), state.clone()
    if known != Validity.VALID:
        is_valid.validity[path] = Validity.ASSUMED_VALID
    if known != Validity.INVALID:
        is_invalid.validity[path] = Validity.ASSUMED_INVALID
    return is_valid, is_invalid


def path_of(node: ast.Expression) -> Path | None:
    """Return the variable and fields that an expression names, or None."""
    match node:
        case ast.Name(declaration=ast.VariableDeclaration() | ast.Parameter() as declaration):
            return None if isinstance(node.type, DeclaredType) else (declaration,)
        case ast.Member(base=base, member=member) if isinstance(base.type, RecordType):
            path = path_of(base) if base.type.kind in ("struct", "header") else None
            return None if path is None else (*path, member)
        case ast.Index(base=base, index=ast.Expression(constant=int() as index)) if isinstance(
            base.type, StackType
        ):
            path = path_of(base)
            return None if path is None else (*path, f"[{index}]")
    return None


def shown(node: ast.Expression) -> str:
    """Return a name with its fields as text."""
    match node:
        case ast.Name(name=name):
            return name
        case ast.Member(base=base, member=member):
            return f"{shown(base)}.{member}"
        case ast.Index(base=base, index=index):
            return f"{shown(base)}[{index.constant if index.constant is not None else shown(index)}]"
    return "..."
