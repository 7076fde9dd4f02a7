"""A preprocessed text from somebody else: no file that it names is opened, and no text takes for ever."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from v1model.errors import CompileError
from v1model.frontend import lexer, load_text
from v1model.frontend.lexer import END, source_line, tokenize


def refusal(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        load_text(text, "hostile.p4")
    return caught.value


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Files that tell something, never end, or that nobody writes to."""
    secret = tmp_path / "secret"
    secret.write_text("something: guess\n")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(secret)
    files = (secret, tmp_path / "link", tmp_path / "fifo", tmp_path)
    return [*map(str, files), os.path.relpath(secret), "/dev/zero", "/proc/self/environ", "/dev/tty", "a\\0b"]


def test_files_that_markers_name_are_not_opened(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns came from the files' lines: they told which words a file that only root may read has."""

    own_thread = threading.get_ident()

    def elsewhere(opens: Callable[..., Any]) -> Callable[..., Any]:
        def opened(*arguments: Any, **options: Any) -> Any:
            assert threading.get_ident() != own_thread, "a file was opened"
            return opens(*arguments, **options)

        return opened

    monkeypatch.setattr(os, "open", elsewhere(os.open))
    monkeypatch.setattr("builtins.open", elsewhere(open))
    for name in (*names, "hostile.p4"):
        for marker in (f'# 1 "{name}"\n', f'# 1 "{name}" 1 3\n'):
            error = refusal(f"{marker}guess\n")
            assert error.span is not None
            assert (error.span.line, error.span.column) == (1, 1)
            assert "something" not in error.render()


def test_of_the_users_own_files_only_regular_ones_are_read(names: list[str]) -> None:
    """A program that somebody was sent may have markers, too."""
    assert [source_line(name, 1) for name in names[:2]] == ["something: guess"] * 2
    for name in names[2:4] + names[5:]:
        assert not source_line(name, 1) or name.startswith("/proc/")


@pytest.mark.parametrize(
    "line", ['#include "/etc/passwd"', "#include </etc/passwd>", '#line 1 "/etc/passwd"', "#define X", "%:x"]
)
def test_a_text_has_no_directives(line: str) -> None:
    assert "expected a declaration, found" in refusal(f"{line}\n").message


def test_a_marker_with_a_number_of_many_digits_is_a_comment() -> None:
    span = refusal(f'# {"9" * 5000} "x"\n?').span
    assert span is not None
    assert span.line == 2


MANY = 10_000
LONG: dict[str, Callable[[], str]] = {
    "one line": lambda: "const bit<8> x = 1; " * MANY,
    "strings on one line": lambda: '"x" ' * MANY,
    "a string over many lines": lambda: '"' + "x\n" * MANY + '"',
    "a string that never ends": lambda: '"' + "x\n" * MANY,
    "a string of escapes that never ends": lambda: '"' + '\\"\n' * MANY,
    "strings that each go on on the next line": lambda: '"\n' * MANY,
    "parentheses": lambda: "(" * MANY,
    "a pragma": lambda: "@pragma x " + "y " * MANY,
}


@pytest.mark.parametrize("what", LONG)
def test_long_texts_take_time_in_proportion(what: str) -> None:
    """Some were read again and again from the beginning: a minute for 100 KB."""
    text = LONG[what]()
    if "never ends" in what:
        with pytest.raises(CompileError, match="this string does not end"):
            tokenize(text, "x.p4")
    else:
        assert tokenize(text, "x.p4")[-1].kind == END


def test_columns_of_a_changed_line_take_time_in_proportion(tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_text("M " + "a b " * MANY)
    tokens = tokenize(f'# 1 "{path}"\n' + "b a c " * MANY, "x.p4", open_files=True)
    assert len(tokens) == 3 * MANY + 1


def test_tokens_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer, "MAX_TOKENS", 100)
    assert refusal("; " * 60 + "\n" + "; " * 60).message == "a program of more than 100 tokens"
