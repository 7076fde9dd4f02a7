"""Outcomes of a case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PASSED, FAILED, REFUSED, LEFT_OUT = "passed", "failed", "refused", "left out"
"""Results. `LEFT_OUT` is no outcome of the summary: the question can't be put to the connector here."""


class CaseError(Exception):
    """A case that did not pass; the message says what was seen."""

    result = FAILED

    def __init__(self, message: str, **measured: Any) -> None:
        super().__init__(message)
        self.measured = measured


class Failed(CaseError):
    """The engine said something else than without the connector, ended, hung, or found nothing again."""


class Refused(CaseError):
    """The connector said itself that it does not do this: at the start, in its answer, or in a message."""

    result = REFUSED


class LeftOut(CaseError):
    """The case can't be posed: vLLM can't do it on this machine, or the suite not to this store."""

    result = LEFT_OUT


class SuiteError(Exception):
    """The suite itself can't run; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case with one connector."""

    result: str
    message: str = ""
    """Why it did not pass."""
    measured: dict[str, Any] = field(default_factory=dict)
    took_s: float = 0.0
