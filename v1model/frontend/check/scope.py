"""What each name means, and where the checker stands in the program."""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.types import DeclaredType, Type, TypeVariable

if TYPE_CHECKING:
    from collections.abc import Iterator

# Functions and extern functions may share a name (overloading); nothing else may.
Symbol = ast.Declaration | list[ast.FunctionDeclaration] | TypeVariable


class Scope:
    """The names that one pair of braces declares."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.symbols: dict[str, Symbol] = {}

    def lookup(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.symbols.get(name)) is not None:
                return found
            scope = scope.parent
        return None

    def names(self) -> set[str]:
        """All names that can be used here."""
        return set(self.symbols) | (self.parent.names() if self.parent else set())


@dataclass
class Context:
    """The state of the checker: the scope, the kind of code it is in, what the program declared."""

    scope: Scope
    root: Scope
    # Index of each error and match kind, in order of declaration over the whole program.
    errors: dict[str, int] = field(default_factory=dict)
    match_kinds: dict[str, int] = field(default_factory=dict)
    # The type that each struct, enum and typedef declares (generic structs: per instance).
    nominal: dict[object, Type] = field(default_factory=dict)
    # Innermost of: program, parser, state, control, apply, action, function.
    place: str = "program"
    return_type: Type | None = None
    loop_depth: int = 0
    this: DeclaredType | None = None
    fresh_variables: int = 0
    # Casts to `int` inside a cast to a width: (bit<8>)((int) x + 1).
    cut_again: set[int] = field(default_factory=set)
    # The subject of the switch statement that is being checked: the only place for action_run.
    switch_subject: ast.Expression | None = None
    # By id: a struct or tuple type, and how many values without fields it consists of.
    field_counts: dict[int, tuple[Type, int]] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> Context:
        root = Scope()
        return cls(root, root)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A scope inside the present one."""
        self.scope = Scope(self.scope)
        try:
            yield
        finally:
            assert self.scope.parent is not None
            self.scope = self.scope.parent

    @contextmanager
    def inside(self, place: str, return_type: Type | None = None) -> Iterator[None]:
        """A nested scope in another kind of code."""
        before = self.place, self.return_type, self.loop_depth
        self.place, self.return_type, self.loop_depth = place, return_type, 0
        try:
            with self.nested():
                yield
        finally:
            self.place, self.return_type, self.loop_depth = before

    def lookup(self, name: str, span: ast.Span, *, absolute: bool = False) -> Symbol:
        """What `name` means here; an error if it was not declared before."""
        scope = self.root if absolute else self.scope
        if (found := scope.lookup(name)) is not None:
            return found
        close = difflib.get_close_matches(name, sorted(scope.names()), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "a name must be declared before it is used"
        raise CompileError(f"{name!r} is not declared", span, hint)

    def declare(self, declaration: ast.Declaration) -> None:
        """Adds a name to the present scope."""
        before = self.scope.symbols.get(declaration.name)
        if isinstance(declaration, ast.FunctionDeclaration):
            if before is None:
                self.scope.symbols[declaration.name] = [declaration]
                return
            if isinstance(before, list):
                check_overload(before, declaration)
                before.append(declaration)
                return
        if before is not None:
            raise CompileError(f"{declaration.name!r} is already declared", declaration.span, _where(before))
        self.scope.symbols[declaration.name] = declaration

    def declare_type_variables(self, names: list[str], span: ast.Span) -> None:
        for name in names:
            if name in self.scope.symbols:
                raise CompileError(f"type parameter {name!r} is declared twice", span)
            self.scope.symbols[name] = TypeVariable(name)


def check_overload(others: list[ast.FunctionDeclaration], function: ast.FunctionDeclaration) -> None:
    """Overloads must differ in the number or the names of their parameters."""
    names = [parameter.name for parameter in function.parameters]
    for other in others:
        if [parameter.name for parameter in other.parameters] == names:
            message = f"{function.name!r} is already declared with the same parameters"
            raise CompileError(message, function.span, _where(other))


def _where(symbol: Symbol) -> str:
    declaration = symbol[0] if isinstance(symbol, list) else symbol
    if isinstance(declaration, ast.Declaration):
        return f"see {declaration.span.file}:{declaration.span.line}"
    return ""
