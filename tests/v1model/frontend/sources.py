"""Small P4 programs from strings, for the tests of the front end."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from v1model.diagnostics import Diagnostics
from v1model.frontend.check import check_program
from v1model.frontend.lexer import tokenize
from v1model.frontend.parser import parse
from v1model.frontend.preprocess import P4INCLUDE, preprocess

if TYPE_CHECKING:
    from v1model.frontend import ast
    from v1model.frontend.lexer import Token

BAD = Path(__file__).parent / "bad"
MISTAKES = Path(__file__).parent / "mistakes"


def parsed(source: str) -> ast.Program:
    """The program, not checked."""
    diagnostics = Diagnostics()
    program = parse(tokenize(source, "test.p4"), diagnostics)
    diagnostics.raise_found()
    return program


def checked(source: str, library: str = "") -> ast.Program:
    """The checked program; `library` is a file of p4include that comes before it."""
    before = library_tokens(library)[:-1] if library else []
    return check_tokens([*before, *tokenize(source, "test.p4")])


def check_tokens(tokens: list[Token]) -> ast.Program:
    """The checked program that the tokens are; raises its first error, with the others behind it."""
    diagnostics = Diagnostics()
    program = parse(tokens, diagnostics)
    check_program(program, diagnostics)
    diagnostics.raise_found()
    return program


@cache
def library_tokens(name: str) -> list[Token]:
    return tokenize(preprocess(P4INCLUDE / name), name)


def declared(program: ast.Program, name: str) -> Any:
    """The last declaration of the name; Any, since a test knows which kind it wrote."""
    return next(found for found in reversed(program.declarations) if found.name == name)


def constant(source: str, name: str = "x", library: str = "") -> Any:
    """The value of a constant that the source declares."""
    return declared(checked(source, library), name).value.constant


def value(expression: str, kind: str = "int") -> Any:
    """The value of a constant expression of the given type."""
    return constant(f"const {kind} x = {expression};")


def mistake(name: str, folder: Path) -> tuple[Path, str]:
    """Write the program with a mistake into a folder; return its path, and what the compiler says of it.

    `mistakes/NAME.txt` has both: how it differs from `mistakes/program.p4`, as a patch whose hunks @@ parts,
    an empty line, and what is said. A program that has little in common with that one is in `NAME.p4`.
    """
    change, _, said = (MISTAKES / f"{name}.txt").read_text().partition("\n\n")
    whole = MISTAKES / f"{name}.p4"
    program = folder / whole.name
    program.write_text(
        whole.read_text() if whole.exists() else changed((MISTAKES / "program.p4").read_text(), change)
    )
    return program, said


def changed(text: str, patch: str) -> str:
    """Return a text with the hunks of a patch applied: each to the first place behind the last that fits."""
    done = ""
    for hunk in patch.split("\n@@\n"):
        lines = hunk.splitlines()
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in side) for side in (" -", " +"))
        before, found, text = text.partition(old)
        assert found, f"no such lines: {old}"
        done += before + new
    return done + text
