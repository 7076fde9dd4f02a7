"""What a user sees when a program is refused: file, line, the source line, a caret and the reason."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.frontend.ast import Span


class CompileError(Exception):
    """A P4 program that is wrong. `span` says where, the message what, `hint` what to do."""

    def __init__(self, message: str, span: Span | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint

    def render(self, source_line: str = "") -> str:
        """The error as compilers print it; `source_line` is the line that `span` points into."""
        where = f"{self.span.file}:{self.span.line}:{self.span.column}: " if self.span else ""
        lines = [f"{where}error: {self.message}"]
        if self.span and source_line:
            indent = "".join("\t" if c == "\t" else " " for c in source_line[: self.span.column - 1])
            lines += [source_line, indent + "^" + "~" * max(0, self.span.length - 1)]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UnsupportedError(CompileError):
    """Legal P4_16 that the embedded switch does not support (docs/embedded-switch.md lists what)."""


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Gives an error from inside a place, if it has none of its own: that of what holds it."""
    try:
        yield
    except CompileError as error:
        error.span = error.span or span
        raise
