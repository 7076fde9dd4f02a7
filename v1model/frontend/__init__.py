"""The P4_16 front end: source text to a checked abstract syntax tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend.check import check_program
from v1model.frontend.lexer import forget_sources, source_line, tokenize
from v1model.frontend.parser import parse
from v1model.frontend.preprocess import preprocess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from v1model.frontend import ast


def load(
    path: str | Path, include_dirs: Iterable[str | Path] = (), defines: Mapping[str, str] | None = None
) -> ast.Program:
    """Preprocesses, parses and checks a program; raises CompileError at its first fault."""
    text = preprocess(Path(path), [Path(directory) for directory in include_dirs], defines)
    return load_text(text, str(path), open_files=True)


def load_text(text: str, name: str, *, open_files: bool = False) -> ast.Program:
    """Parses and checks a text that `preprocess` has made from the file `name`. `open_files`: places may be
    looked up in the files that the text names, because it was made here, from the user's files."""
    forget_sources()
    program = parse(tokenize(text, name, open_files=open_files))
    try:
        check_program(program)
    except RecursionError:
        raise CompileError(f"{name}: an expression or statement is nested too deeply") from None
    return program


def render(error: CompileError) -> str:
    """The error with the source line and a caret below the place."""
    return error.render(source_line(error.span.file, error.span.line) if error.span else "")


__all__ = ["load", "load_text", "render"]
