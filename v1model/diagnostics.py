"""All errors and warnings of a program: after an error the front end continues behind its place."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from v1model.errors import CompileError, CompileWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from v1model.frontend.nodes import Span

DEFAULT_MAX_ERRORS = 20  # p4c's


class TooManyErrorsError(Exception):
    """The maximal number of errors was found."""


class Diagnostics:
    """Errors found so far, `max_errors` at most, and warnings.

    A declaration that could not be read or checked is missing in what follows. Errors about names that it
    declares are not listed, because they may go away with its own error.
    """

    def __init__(self, max_errors: int = DEFAULT_MAX_ERRORS) -> None:
        self.max_errors = max_errors
        self.errors: list[CompileError] = []
        self.warnings: dict[CompileWarning, None] = {}  # in the order in which they were found, each once
        self._lost: set[str] = set()

    def warn(self, kind: str, message: str, span: Span, hint: str = "") -> None:
        """Add a warning, unless it is there."""
        self.warnings.setdefault(CompileWarning(kind, message, span, hint))

    def add(self, error: CompileError) -> None:
        """Add an error, unless it is there; raises TooManyErrorsError at `max_errors`."""
        if error in self.errors or (error.missing and error.missing in self._lost):
            return
        self.errors.append(error)
        if len(self.errors) >= self.max_errors:
            raise TooManyErrorsError

    def lose(self, names: Iterable[str]) -> None:
        """Record that the declarations of these names may be lost."""
        self._lost.update(names)

    @contextmanager
    def recovering(self, declared: str = "") -> Iterator[None]:
        """Add an error of the block instead of raising it. `declared` is the name that is lost with it."""
        try:
            yield
        except CompileError as error:
            self.add(error)
            if declared:
                self.lose([declared])

    def raise_found(self) -> None:
        """Raise the first error with the others attached; do nothing if there is none."""
        if self.errors:
            first, *others = self.errors
            first.others = tuple(others)
            raise first from None
