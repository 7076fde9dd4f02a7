"""Errors and warnings that a user sees: file, line, source line, caret and reason."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.frontend.ast import Span

C_LIMIT = re.compile(r"signal terminated program|out of memory|virtual memory exhausted")
"""Pattern of what C compilers and preprocessors print when a limit on time or memory ends them."""


class CompileError(Exception):
    """A P4 program has an error. `span` says where, the message what, `hint` what to do.

    `others` are the errors that were found after this one. `missing` is the name that was not found.
    """

    def __init__(self, message: str, span: Span | None = None, hint: str = "", *, missing: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.hint, self.missing = message, span, hint, missing
        self.others: tuple[CompileError, ...] = ()

    @property
    def all(self) -> tuple[CompileError, ...]:
        """Return this error and those that were found after it."""
        return (self, *self.others)

    def render(self, source_line: str = "") -> str:
        """Return the error as compilers print it; `source_line` is the line that `span` points into."""
        return render_message("error", self.message, self.span, self.hint, source_line)


class UnsupportedError(CompileError):
    """Legal P4_16 that the embedded switch does not support (docs/embedded-switch.md lists what)."""


@dataclass(frozen=True, slots=True)
class CompileWarning:
    """A place in a legal program that is probably a mistake; `kind` is p4c's name for it."""

    kind: str
    message: str
    span: Span
    hint: str = ""

    def render(self, source_line: str = "") -> str:
        """Return the warning as compilers print it; `source_line` is the line that `span` points into."""
        return render_message("warning", f"{self.message} [{self.kind}]", self.span, self.hint, source_line)


def render_message(severity: str, message: str, span: Span | None, hint: str, source_line: str) -> str:
    """Return place, severity and message, the source line with a caret below the place, and the hint."""
    where = f"{span.file}:{span.line}:{span.column}: " if span else ""
    lines = [f"{where}{severity}: {message}"]
    if span and source_line:
        indent = "".join("\t" if c == "\t" else " " for c in source_line[: span.column - 1])
        lines += [source_line, indent + "^" + "~" * max(0, span.length - 1)]
    if hint:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Give errors of the block this place, if they have none of their own."""
    try:
        yield
    except CompileError as error:
        error.span = error.span or span
        raise
