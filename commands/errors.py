"""Errors that a command reports and ends with, instead of a traceback."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any


class ExperimentError(Exception):
    """An experiment can't go on. The message says what, where, and what to do. Not for bugs."""


class OptionError(ExperimentError):
    """A value or name that a command does not take; the message names it and says what it takes."""


class CrashError(ExperimentError):
    """A process ended unexpectedly; the message has its last lines."""

    def __init__(self, process: str, exit_code: int, last_lines: Sequence[str]) -> None:
        """Make the message. `exit_code` is negative for a signal, as in subprocess."""
        self.process, self.how, self.last_lines = process, _how(exit_code), tuple(last_lines)
        listed = "\n".join(f"  {line}" for line in last_lines) or "  (nothing)"
        super().__init__(f"{process} {self.how}. The last that it said:\n{listed}")

    def summary(self) -> dict[str, Any]:
        """Return the error as summary.json has it."""
        return {"process": self.process, "how": self.how, "last_lines": list(self.last_lines)}


def _how(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"
