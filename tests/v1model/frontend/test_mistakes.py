"""The compiler's messages for mistakes of beginners are exactly those in `mistakes/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.frontend.sources import MISTAKES, mistake
from v1model.errors import CompileError
from v1model.frontend import Diagnostics, load_text, render, render_one
from v1model.frontend.preprocess import preprocess
from v1model.midend import lower

if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted(path.stem for path in MISTAKES.glob("*.txt"))


def said_of(program: Path) -> str:
    """Return what weir-p4c says of a program, with the program's name alone as its place."""
    diagnostics = Diagnostics()
    try:
        text = preprocess(program)
        lower(load_text(text, str(program), diagnostics, open_files=True), str(program))
        lines = [render_one(warning) for warning in diagnostics.warnings]
    except CompileError as error:
        lines = [render(error)]
    return "".join(f"{line}\n" for line in lines).replace(f"{program.parent}/", "")


def test_nothing_is_said_of_the_program_without_a_mistake() -> None:
    assert said_of(MISTAKES / "program.p4") == ""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    program, said = mistake(name, tmp_path)
    assert said_of(program) == said
