"""Warnings on the command line: shown, switched off, made errors; and the pool's program has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.v1model.frontend.sources import MISTAKES, mistake
from v1model.frontend import Diagnostics, load_text, render_one
from v1model.frontend.preprocess import preprocess
from v1model.frontend.warn import KINDS
from v1model.p4c import OK, REFUSED, main

ROOT = Path(__file__).parents[2]
OWN = sorted((ROOT / "p4").glob("*.p4"))


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for all tests of this file."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path_factory.getbasetemp() / "warnings"))


@pytest.fixture(scope="module")
def overflow(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a program with one warning."""
    return str(mistake("warn_overflow", tmp_path_factory.mktemp("overflow"))[0])


@pytest.fixture
def many_at_once(tmp_path: Path) -> str:
    """Return the path of a program with five errors."""
    return str(mistake("many_at_once", tmp_path)[0])


def test_a_warning_is_shown_whenever_the_program_is_compiled(
    overflow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # compiled, and found in the cache
        assert main([overflow]) == OK
        said = capsys.readouterr().err
        assert f"{overflow}:30:35: warning: 300 does not fit bit<8>: it becomes 44 [overflow]" in said


@pytest.mark.parametrize("option", ["-Wno-overflow", "--Wdisable=overflow", "--Wdisable", "-w"])
def test_switched_off(option: str, overflow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, overflow]) == OK
    assert capsys.readouterr().err == ""


def test_other_kinds_stay(overflow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-Wno-unused", overflow]) == OK
    assert "[overflow]" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--Werror", "-Werror", "--Werror=overflow"])
def test_as_errors(option: str, overflow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, overflow, "-o", str(tmp_path / "out.json")]) == REFUSED
    assert "error: 1 of these warnings are errors" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_other_kinds_are_no_errors(overflow: str) -> None:
    assert main(["--Werror=unused", overflow]) == OK


def test_all_errors_are_shown(many_at_once: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([many_at_once]) == REFUSED
    assert capsys.readouterr().err.count(" error: ") == 5


def test_as_many_errors_as_asked_for(many_at_once: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--maxErrorCount", "2", many_at_once]) == REFUSED
    assert capsys.readouterr().err.count(" error: ") == 2


def test_every_kind_is_described() -> None:
    shown = {
        line.rpartition("[")[2].rstrip("]")
        for path in MISTAKES.glob("warn_*.txt")
        for line in path.read_text().splitlines()
        if " warning: " in line
    }
    assert shown == set(KINDS)


@pytest.mark.parametrize("program", OWN, ids=lambda path: path.name)
def test_the_pool_has_no_warning(program: Path) -> None:
    diagnostics = Diagnostics()
    load_text(preprocess(program), str(program), diagnostics, open_files=True)
    assert [render_one(warning) for warning in diagnostics.warnings] == []
