"""P4_16 front end: source text to a checked abstract syntax tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from v1model.diagnostics import DEFAULT_MAX_ERRORS, Diagnostics, TooManyErrorsError
from v1model.errors import CompileError, CompileWarning
from v1model.frontend.lexer import forget_sources, source_line, tokenize
from v1model.frontend.preprocess import preprocess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from v1model.frontend import ast


def load(
    path: str | Path, include_dirs: Iterable[str | Path] = (), defines: Mapping[str, str] | None = None
) -> ast.Program:
    """Preprocess, parse and check a program; raises CompileError with all its errors."""
    text = preprocess(Path(path), [Path(directory) for directory in include_dirs], defines)
    return load_text(text, str(path), Diagnostics(), open_files=True)


def load_text(
    text: str, name: str, diagnostics: Diagnostics | None = None, *, open_files: bool = False
) -> ast.Program:
    """Parse and check a text that `preprocess` made from the file `name`.

    Adds warnings to `diagnostics`; raises CompileError with all errors, up to the limit of `diagnostics`.
    With `open_files`, places may be looked up in the files that the text names, because it was made here,
    from the user's files.
    """
    # Imported here: a switch whose program is in the cache needs none of these.
    from v1model.frontend.check import check_program
    from v1model.frontend.dialects import p4_14_error
    from v1model.frontend.parser import parse
    from v1model.frontend.warn import warn_about

    forget_sources()
    diagnostics = diagnostics or Diagnostics()
    program: ast.Program | None = None
    try:
        tokens = tokenize(text, name, open_files=open_files)
        program = parse(tokens, diagnostics)
        if diagnostics.errors and (error := p4_14_error(tokens)):
            raise error
        context = check_program(program, diagnostics)
        if not diagnostics.errors:
            warn_about(program, context, diagnostics)
    except TooManyErrorsError:
        pass
    except RecursionError:
        diagnostics.raise_found()
        raise CompileError(f"{name}: an expression or statement is nested too deeply") from None
    diagnostics.raise_found()
    assert program is not None
    return program


def render(error: CompileError) -> str:
    """Return the error and all that were found after it, each with its source line and a caret."""
    return "\n".join(map(render_one, error.all))


def render_one(found: CompileError | CompileWarning) -> str:
    """Return one error or warning with the source line and a caret below the place."""
    return found.render(source_line(found.span.file, found.span.line) if found.span else "")


__all__ = ["DEFAULT_MAX_ERRORS", "Diagnostics", "load", "load_text", "render", "render_one"]
