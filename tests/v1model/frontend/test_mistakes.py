"""What beginners write, and all that the compiler says of it: the file beside each program, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from v1model.errors import CompileError
from v1model.frontend import Diagnostics, load_text, render, render_one
from v1model.frontend.preprocess import preprocess
from v1model.midend import lower

MISTAKES = Path(__file__).parent / "mistakes"
PROGRAMS = sorted(MISTAKES.glob("*.p4"))


def said_of(program: Path) -> str:
    """What weir-p4c says of a program, with the program's name alone as its place."""
    diagnostics = Diagnostics()
    try:
        text = preprocess(program)
        lower(load_text(text, str(program), diagnostics, open_files=True), str(program))
        lines = [render_one(warning) for warning in diagnostics.warnings]
    except CompileError as error:
        lines = [render(error)]
    return "\n".join(lines).replace(f"{program.parent}/", "") + "\n"


def test_there_are_forty() -> None:
    assert len(PROGRAMS) >= 40


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_said(program: Path) -> None:
    assert said_of(program) == program.with_suffix(".txt").read_text()
