"""The parser: recursive descent, one function for each rule of the P4_16 grammar."""

from v1model.errors import CompileError
from v1model.frontend import ast
from v1model.frontend.lexer import Token
from v1model.frontend.parser.cursor import Cursor
from v1model.frontend.parser.declarations import program


def parse(tokens: list[Token]) -> ast.Program:
    """The program that `tokens`, from `tokenize`, are."""
    cursor = Cursor(tokens)
    try:
        return program(cursor)
    except RecursionError:
        raise CompileError("this is nested too deeply", cursor.span) from None


__all__ = ["parse"]
