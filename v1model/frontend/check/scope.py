"""Scopes of names, and the checker's state."""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from v1model.diagnostics import Diagnostics
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.dialects import HINTS
from v1model.frontend.types import DeclaredType, Type, TypeVariable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Functions and extern functions may share a name (overloading); nothing else may.
Symbol = ast.Declaration | list[ast.FunctionDeclaration] | TypeVariable
Kinds = tuple[type, ...]

ANY_KIND: Kinds = (object,)
TYPES: Kinds = (
    ast.StructDeclaration, ast.EnumDeclaration, ast.TypedefDeclaration, ast.ExternDeclaration,
    ast.ParserDeclaration, ast.ControlDeclaration, ast.PackageDeclaration, TypeVariable,
)  # fmt: skip
CALLABLE: Kinds = (list, ast.ActionDeclaration)
APPLICABLE: Kinds = (ast.TableDeclaration, ast.Instantiation)
VALUES: Kinds = (
    ast.Parameter, ast.VariableDeclaration, ast.ConstantDeclaration, ast.Instantiation, ast.TableDeclaration,
)  # fmt: skip


class Scope:
    """Names that one pair of braces declares."""

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

    def names(self, kinds: Kinds) -> set[str]:
        """Return all names of these kinds that can be used here."""
        names = {name for name, symbol in self.symbols.items() if isinstance(symbol, kinds)}
        return names | (self.parent.names(kinds) if self.parent else set())


@dataclass
class Context:
    """State of the checker: the scope, the kind of code it is in, the program's declarations."""

    scope: Scope
    root: Scope
    diagnostics: Diagnostics
    # Declarations of the whole program and of each enclosing parser or control, also of those further down.
    declarations: list[dict[str, ast.Declaration]] = field(default_factory=list)
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
    # Declarations whose names are used.
    used: set[ast.Declaration] = field(default_factory=set)
    # The subject of the switch statement that is being checked: the only place for action_run.
    switch_subject: ast.Expression | None = None
    # The table that each direct counter and meter is attached to.
    attached: dict[ast.Declaration, ast.TableDeclaration] = field(default_factory=dict)
    # By id: a struct or tuple type, and how many values without fields it consists of.
    field_counts: dict[int, tuple[Type, int]] = field(default_factory=dict)
    # By id: a composite type, and the int or string that is part of it, if any.
    compile_time_parts: dict[int, tuple[Type, Type | None]] = field(default_factory=dict)

    @classmethod
    def empty(cls, diagnostics: Diagnostics) -> Context:
        root = Scope()
        return cls(root, root, diagnostics)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Enter a nested scope for the block."""
        self.scope = Scope(self.scope)
        try:
            yield
        finally:
            assert self.scope.parent is not None
            self.scope = self.scope.parent

    @contextmanager
    def inside(self, place: str, return_type: Type | None = None) -> Iterator[None]:
        """Enter a nested scope with another kind of code for the block."""
        before = self.place, self.return_type, self.loop_depth
        self.place, self.return_type, self.loop_depth = place, return_type, 0
        try:
            with self.nested():
                yield
        finally:
            self.place, self.return_type, self.loop_depth = before

    @contextmanager
    def declaring(self, declarations: Iterable[ast.Declaration]) -> Iterator[None]:
        """Make these declarations known for the block, for hints about names that are used too early."""
        self.declarations.append({declaration.name: declaration for declaration in declarations})
        try:
            yield
        finally:
            self.declarations.pop()

    def lookup(self, name: str, span: ast.Span, *, absolute: bool = False, kinds: Kinds = ANY_KIND) -> Symbol:
        """Return what `name` means here; raises CompileError if it was not declared before.

        `kinds` is what the place can use, for the hint.
        """
        scope = self.root if absolute else self.scope
        if (found := scope.lookup(name)) is not None:
            self.used.update(
                found if isinstance(found, list) else [found] if isinstance(found, ast.Node) else []
            )
            return found
        if (further_down := self.find_later(name)) is not None:
            raise _used_too_early(further_down, span)
        later = [n for known in self.declarations for n, found in known.items() if isinstance(found, kinds)]
        names = sorted({*scope.names(kinds), *later})
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "a name must be declared before it is used"
        raise CompileError(f"{name!r} is not declared", span, HINTS.get(name, hint), missing=name)

    def find_later(self, name: str) -> ast.Declaration | None:
        """Return the declaration of the name further down or around this place, or None."""
        found = [declarations[name] for declarations in self.declarations if name in declarations]
        return found[-1] if found else None

    def declare(self, declaration: ast.Declaration) -> None:
        """Add a name to the present scope."""
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
        self._warn_of_shadow(declaration)
        self.scope.symbols[declaration.name] = declaration

    def _warn_of_shadow(self, declaration: ast.Declaration) -> None:
        """Warn if a local name hides one of the same program around it. Parameters may repeat names."""
        outer = self.scope.parent and self.scope.parent.lookup(declaration.name)
        if isinstance(declaration, ast.Parameter) or not isinstance(outer, ast.Declaration):
            return
        if outer.span.file == declaration.span.file:
            message = f"{declaration.name!r} hides another {declaration.name!r}"
            self.diagnostics.warn("shadow", message, declaration.span, _where(outer))

    def declare_type_variables(self, names: list[str], span: ast.Span) -> None:
        for name in names:
            if name in self.scope.symbols:
                raise CompileError(f"type parameter {name!r} is declared twice", span)
            self.scope.symbols[name] = TypeVariable(name)


def _used_too_early(declaration: ast.Declaration, span: ast.Span) -> CompileError:
    """Return the error for a name that is declared further down, or whose declaration is being checked."""
    name, line = declaration.name, declaration.span.line
    if declaration.span.file == span.file and line <= span.line:
        if isinstance(declaration, ast.ConstantDeclaration | ast.VariableDeclaration):
            return CompileError(f"{name!r} is used in its own declaration", span, missing=name)
        hint = "P4 has no recursion: write a loop ('for'), or repeat the call by hand"
        does = "calls" if isinstance(declaration, ast.FunctionDeclaration | ast.ActionDeclaration) else "uses"
        return CompileError(f"{name!r} {does} itself", span, hint, missing=name)
    hint = f"move {declaration.span.file}:{line} up: a name must be declared before it is used"
    return CompileError(f"{name!r} is declared only further down", span, hint, missing=name)


def check_overload(others: list[ast.FunctionDeclaration], function: ast.FunctionDeclaration) -> None:
    """Require that overloads differ in the number or the names of their parameters."""
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
