"""The parser: recursive descent, one function for each rule of the P4_16 grammar."""

from v1model.diagnostics import Diagnostics
from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import Token
from v1model.frontend.parser.cursor import Cursor
from v1model.frontend.parser.declarations import program


def parse(tokens: list[Token], diagnostics: Diagnostics) -> ast.Program:
    """Return the program that `tokens`, from `tokenize`, are, as far as it can be read. What is wrong goes to
    `diagnostics`."""
    cursor = Cursor(tokens, diagnostics)
    try:
        return program(cursor)
    except RecursionError:
        raise CompileError("this is nested too deeply", cursor.span) from None


__all__ = ["parse"]
