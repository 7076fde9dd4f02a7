"""Checker: names, types, directions and compile-time values of a parsed program.

There is a module for each part of the language. Its functions take the Context and a node, fill in what
`ast.py` marks as *checked*, and raise CompileError for errors of the program.
"""

from v1model.frontend.check.program import check_program

__all__ = ["check_program"]
