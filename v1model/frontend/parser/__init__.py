"""Parser: recursive descent, with one function for each rule of the P4_16 grammar."""

from v1model.diagnostics import Diagnostics
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import Token
from v1model.frontend.parser.cursor import Cursor
from v1model.frontend.parser.declarations import program


def parse(tokens: list[Token], diagnostics: Diagnostics) -> ast.Program:
    """Return the program of `tokens` from `tokenize`, as far as it can be read; errors go to diagnostics."""
    cursor = Cursor(tokens, diagnostics)
    try:
        return program(cursor)
    except RecursionError:
        raise CompileError("this is nested too deeply", cursor.span) from None


__all__ = ["parse"]
