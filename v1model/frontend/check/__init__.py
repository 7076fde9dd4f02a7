"""The checker: names, types, directions and compile-time values of a parsed program.

One module for each part of the language, whose functions take the Context and a node, fill in what
`ast.py` marks as *checked*, and raise CompileError where the program is wrong.
"""

from v1model.frontend.check.program import check_program

__all__ = ["check_program"]
