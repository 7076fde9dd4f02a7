from __future__ import annotations

import os
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from v1model.errors import CompileError
from v1model.frontend import load
from v1model.frontend.lexer import tokenize
from v1model.frontend.preprocess import preprocess

if TYPE_CHECKING:
    from pathlib import Path


preprocessor = sys.modules[preprocess.__module__]


def texts(path: Path, defines: dict[str, str] | None = None) -> list[str]:
    return [token.text for token in tokenize(preprocess(path, defines=defines), str(path))][:-1]


def test_macros_and_defines(tmp_path: Path) -> None:
    path = tmp_path / "a.p4"
    path.write_text("#ifdef WIDE\n#define W 64\n#else\n#define W 8\n#endif\nbit<W>\n")
    assert texts(path) == ["bit", "<", "8", ">"]
    assert texts(path, defines={"WIDE": "1"}) == ["bit", "<", "64", ">"]


def test_target_is_defined_as_p4c_does(tmp_path: Path) -> None:
    path = tmp_path / "a.p4"
    path.write_text("#ifdef __TARGET_BMV2__\nyes\n#endif\n")
    assert texts(path) == ["yes"]


def test_strings_keep_what_looks_like_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.p4"
    lines = [
        '@a("',
        "  // one",
        "  x /* two */ y",
        '")',
        "/* three",
        'four */ five // "six',
        "# it's \"seven",
        "8",
    ]
    path.write_text("\n".join(lines) + "\n")
    tokens = tokenize(preprocess(path), str(path))[:-1]
    assert [token.text for token in tokens] == [
        *("@", "a", "(", '"\n  // one\n  x /* two */ y\n"', ")"),
        *("five", "8"),
    ]
    assert [token.span.line for token in tokens][-2:] == [6, 8]


def test_include_dirs_and_own_library(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.p4").write_text("const bit<8> part = 1;\n")
    path = tmp_path / "a.p4"
    path.write_text("#include <core.p4>\n#include <part.p4>\n")
    names = [declaration.name for declaration in load(path, [tmp_path / "parts"]).declarations]
    assert names[-2:] == ["NoAction", "part"]


def test_included_beside_the_including_file(tmp_path: Path) -> None:
    (tmp_path / "part.p4").write_text("const bit<8> part = 1;\n")
    path = tmp_path / "a.p4"
    path.write_text('#include "part.p4"\n')
    assert [declaration.name for declaration in load(path).declarations] == ["part"]


def test_place_in_included_file(tmp_path: Path) -> None:
    part = tmp_path / "part.p4"
    part.write_text("\n\n  const bit<8> part = 1 +;\n")
    path = tmp_path / "a.p4"
    path.write_text('#include "part.p4"\n')
    with pytest.raises(CompileError) as caught:
        load(path)
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line, caught.value.span.column) == (str(part), 3, 26)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="no such file"):
        load(tmp_path / "none.p4")


def test_directive_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.p4"
    path.write_text("\n#if\n#endif\n")
    with pytest.raises(CompileError) as caught:
        load(path)
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_without_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.p4"
    path.write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match="no C compiler"):
        load(path)


def test_path_that_looks_like_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "-odd.p4").write_text("const bit<8> a = 1;\n")
    monkeypatch.chdir(tmp_path)
    assert [declaration.name for declaration in load("-odd.p4").declarations] == ["a"]


def test_own_library_comes_first(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "core.p4").write_text("this is no P4\n")
    path = tmp_path / "a.p4"
    path.write_text("#include <core.p4>\n")
    assert load(path, [tmp_path / "other"]).declarations


DOUBLING_MACROS = (
    "#define m0 x\n" + "".join(f"#define m{n} m{n - 1} m{n - 1}\n" for n in range(1, 60)) + "m59\n"
)
DOUBLING_ARGUMENTS = "#define twice(x) x x\n" + "twice(" * 60 + "x" + ")" * 60 + "\n"
TWICE_ITSELF = '#include "a.p4"\n#include "a.p4"\n'


@pytest.mark.parametrize("text", [DOUBLING_MACROS, DOUBLING_ARGUMENTS, TWICE_ITSELF])
def test_macros_and_includes_that_double_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """They took all memory for half a minute, and the C preprocessor went on after it for ever."""
    monkeypatch.setattr(preprocessor, "MAX_CPU_S", 1)
    monkeypatch.setattr(preprocessor, "MAX_MEMORY_KIB", 64 << 10)
    monkeypatch.setattr(preprocessor, "MAX_TEXT_BYTES", 1 << 20)
    path = tmp_path / "a.p4"
    path.write_text(text)
    with pytest.raises(CompileError, match=r"preprocessing takes more than|nested depth"):
        preprocess(path)


def test_an_include_that_nobody_writes_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preprocessor, "TIMEOUT_S", 0.3)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    path = tmp_path / "a.p4"
    path.write_text(f'#include "{fifo}"\n')
    with pytest.raises(CompileError, match="preprocessing takes more than"):
        preprocess(path)
    until_s = time.monotonic() + 60
    while is_read(fifo):
        assert time.monotonic() < until_s
        time.sleep(0.01)


def is_read(fifo: Path) -> bool:
    """Whether a process has it open to read."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def test_a_long_string_takes_memory_in_proportion(tmp_path: Path) -> None:
    """Each character of it took 136 bytes of the regular expression, where a text may have 32 MiB."""
    path = tmp_path / "a.p4"
    path.write_text(f'"{"x" * (1 << 20)}"')
    tracemalloc.start()
    try:
        preprocess(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("end", ["", "\\"])
def test_a_string_of_escapes_that_never_ends_takes_time_in_proportion(tmp_path: Path, end: str) -> None:
    """Each of its quotes was looked at as the beginning of a string: days for 1 MB."""
    path = tmp_path / "a.p4"
    path.write_text('"' + '\\"' * 200_000 + end)
    assert len(preprocess(path)) > 400_000
