"""Warnings about legal but probably mistaken parts of a checked program, in p4c's words and kinds.

Code in core.p4 and v1model.p4 is not the user's and gets no warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.warn import blocks, counters, field_lists, shapes, unused

if TYPE_CHECKING:
    from v1model.diagnostics import Diagnostics
    from v1model.frontend.check.scope import Context

KINDS = {
    "deprecated": "calls of what is marked @deprecated",
    "duplicate-priorities": "entries of a table with the same priority",
    "entries-out-of-priority-order": "entries that win over those before them",
    "ignore": "count() of a direct counter where its table is not applied",
    "ignore-prop": "table properties that are not known",
    "invalid": "ranges of a select that hold nothing, field lists without a field",
    "invalid-header": "fields of a header that is not valid there, or perhaps not",
    "mismatch": "negative values as bit<>, constant keys, bits outside a mask, size beside constant entries, "
    "wrong count of {} in messages",
    "overflow": "values that do not fit, shifts by as much as the width",
    "parser-transition": "select cases behind one that takes all, states that end without a transition",
    "shadow": "names that hide an outer one",
    "uninitialized-out-param": "out parameters that may not be assigned at the end",
    "uninitialized-use": "variables that may not be assigned where they are read",
    "unreachable": "what is never reached: statements, parser states, entries with the same keys as others",
    "unsupported": "headers on the wire of no whole number of bytes",
    "unused": "variables, constants, parameters, actions, tables, controls and parsers that are not used",
}


def warn_about(program: ast.Program, context: Context, diagnostics: Diagnostics) -> None:
    """Add the warnings about a program without errors; `context` is the checker's.

    An included file may have constants that this program does not use.
    """
    program_file = program.declarations[-1].span.file if program.declarations else ""
    declarations = [node for node in program.declarations if not is_library(node.span)]
    field_lists.warn_field_lists(declarations, diagnostics)
    for declaration in declarations:
        if declaration.span.file == program_file or not isinstance(declaration, ast.ConstantDeclaration):
            unused.warn_unused(declaration, context.used, diagnostics)
        shapes.warn_shapes(declaration, diagnostics)
        blocks.warn_flow(declaration, diagnostics)
        if isinstance(declaration, ast.ControlDeclaration):
            counters.warn_counts(declaration, diagnostics)


def is_library(span: ast.Span) -> bool:
    """Return whether the place is in core.p4 or v1model.p4."""
    return span.file.endswith(("p4include/core.p4", "p4include/v1model.p4"))


__all__ = ["KINDS", "warn_about"]
