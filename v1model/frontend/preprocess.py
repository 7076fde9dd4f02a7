"""The C preprocessor: a P4 file and all it includes, as one text with line markers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend.ast import Span
from v1model.frontend.dialects import architecture_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

P4INCLUDE = Path(__file__).parent.parent / "p4include"
TIMEOUT_S = 30.0

# What p4c defines for simple_switch; programs test it to tell the targets apart.
TARGET_DEFINES = {"__TARGET_BMV2__": "1"}

# As p4c calls it, comments included, since it takes them even out of strings that span lines.
_PREPROCESSOR = ("-E", "-C", "-x", "assembler-with-cpp", "-undef", "-nostdinc", "-w")

# `kept` is what may look like a comment and is none: strings, and lines that begin with #.
_COMMENT = re.compile(
    r"""(?P<kept>"(?:[^"\\]|\\.)*"|^[ \t]*\#[^\n]*)|//[^\n]*|/\*.*?\*/""", re.DOTALL | re.MULTILINE
)
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)"
)


class PreprocessorError(CompileError):
    """What the C preprocessor could not read: a missing include, an #error."""


def preprocess(
    path: Path,
    include_dirs: Iterable[Path] = (),
    defines: Mapping[str, str] | None = None,
    undefined: Iterable[str] = (),
) -> str:
    """Return the text of `path` with includes, macros and conditionals resolved and comments removed."""
    if not path.is_file():
        raise PreprocessorError(f"{path}: no such file", hint="give the path of a P4_16 program")
    if (compiler := shutil.which("cc")) is None:
        raise CompileError("no C compiler found: cc is needed to preprocess P4", hint="apt install gcc")
    source = f"./{path}" if str(path).startswith("-") else str(path)
    options = [f"-D{name}={value}" for name, value in {**TARGET_DEFINES, **(defines or {})}.items()]
    options += [f"-U{name}" for name in undefined]
    options += [f"-I{directory}" for directory in (P4INCLUDE, *include_dirs)]
    command = [compiler, *_PREPROCESSOR, *options, source]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise PreprocessorError(f"{path}: preprocessing took more than {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        raise _preprocessor_error(path, done.stderr.decode(errors="replace"))
    return _without_comments(done.stdout.decode(errors="replace"))


def _without_comments(text: str) -> str:
    """Return the text without comments, its lines where they were and strings as they are."""

    def replaced(match: re.Match[str]) -> str:
        kept: str | None = match["kept"]
        if kept is not None:
            return kept
        return "" if match[0].startswith("//") else " " + "\n" * match[0].count("\n")

    return _COMMENT.sub(replaced, text)


def _preprocessor_error(path: Path, stderr: str) -> PreprocessorError:
    """The first diagnostic of the preprocessor, at the place that it names."""
    for line in stderr.splitlines():
        if match := _DIAGNOSTIC.match(line):
            span = Span(match["file"], int(match["line"]), int(match["column"] or 1))
            text = match["text"].removeprefix("#error ").strip('"')
            return PreprocessorError(text, span, architecture_hint(text.partition(":")[0]))
    return PreprocessorError(f"{path}: the C preprocessor failed: {stderr.strip() or 'no message'}")
