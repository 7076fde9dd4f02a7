"""Commands in the test's own process: to import what they need takes a second or two each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from commands.declarations import PREFIX


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """play(main, *arguments, **variables): run a command; variables are given as make does."""

    def run(main: Callable[[Sequence[str]], int], *arguments: str, **variables: str) -> Done:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(PREFIX + name, value)
            code = main(arguments)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
