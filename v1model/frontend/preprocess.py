"""C preprocessor: makes of a P4 file and all its includes one text with line markers."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.errors import C_LIMIT, CompileError
from v1model.frontend.ast import Span
from v1model.frontend.dialects import architecture_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import IO

P4INCLUDE = Path(__file__).parent.parent / "p4include"
# Twenty macros that each name the one before twice make a megabyte of text; sixty would never end.
TIMEOUT_S = 30.0
MAX_CPU_S = 30
MAX_MEMORY_KIB = 1 << 20
MAX_TEXT_BYTES = 32 << 20

# Defined by p4c for simple_switch; programs test it to distinguish targets.
TARGET_DEFINES = {"__TARGET_BMV2__": "1"}

# Called as by p4c, with comments kept, since cc removes them even from strings that span lines.
_PREPROCESSOR = ("-E", "-C", "-x", "assembler-with-cpp", "-undef", "-nostdinc", "-w", "-Wfatal-errors")

# `kept` looks like a comment and is none: strings, and lines that begin with #.
_COMMENT = re.compile(
    r"""(?P<kept>"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|^[ \t]*\#[^\n]*)|//[^\n]*|/\*.*?\*/""", re.DOTALL | re.MULTILINE
)
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)"
)


class PreprocessorError(CompileError):
    """The C preprocessor failed: a missing include, or an #error."""


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
    with tempfile.TemporaryFile() as text:
        errors = _run_within_limits(path, command, text)
        if errors is not None:
            raise _preprocessor_error(path, errors.decode(errors="replace"))
        text.seek(0)
        return _without_comments(text.read().decode(errors="replace"))


def _run_within_limits(path: Path, command: Sequence[str], text: IO[bytes]) -> bytes | None:
    """Write the command's output to `text`; return its errors if it failed, else None."""
    shell = f'ulimit -t {MAX_CPU_S}; ulimit -v {MAX_MEMORY_KIB}; ulimit -f {MAX_TEXT_BYTES >> 9}; exec "$@"'
    process = subprocess.Popen(
        ["/bin/sh", "-c", shell, "sh", *command], stdout=text, stderr=subprocess.PIPE, process_group=0
    )
    try:
        _, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise _too_much(path) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the compiler has processes of its own
        process.wait()
        if process.stderr:
            process.stderr.close()
    return None if process.returncode == 0 else errors


def _without_comments(text: str) -> str:
    """Return the text without comments; lines keep their numbers, and strings stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        kept: str | None = match["kept"]
        if kept is not None:
            return kept
        return "" if match[0].startswith("//") else " " + "\n" * match[0].count("\n")

    return _COMMENT.sub(replaced, text)


def _too_much(path: Path) -> PreprocessorError:
    return PreprocessorError(
        f"{path}: preprocessing takes more than {MAX_CPU_S} s, {MAX_MEMORY_KIB >> 10} MiB of memory or "
        f"{MAX_TEXT_BYTES >> 20} MiB of text",
        hint="look for macros or includes that name one another twice",
    )


def _preprocessor_error(path: Path, stderr: str) -> PreprocessorError:
    """Return the first diagnostic of the preprocessor as an error at its place."""
    for line in stderr.splitlines():
        if match := _DIAGNOSTIC.match(line):
            span = Span(match["file"], int(match["line"]), int(match["column"] or 1))
            text = match["text"].removeprefix("#error ").strip('"')
            return PreprocessorError(text, span, architecture_hint(text.partition(":")[0]))
    if C_LIMIT.search(stderr):
        return _too_much(path)
    return PreprocessorError(f"{path}: the C preprocessor failed: {stderr.strip() or 'no message'}")
