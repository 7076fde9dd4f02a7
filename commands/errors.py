"""What a command reports and ends with, instead of a traceback."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any


class ExperimentError(Exception):
    """Why an experiment can't go on; the message says what, where, and what to do. Not for bugs."""


class OptionError(ExperimentError):
    """A value, or a name, that a command does not take; the message says which, and what it takes."""


class CrashError(ExperimentError):
    """A process ended that should not have; the message has its last lines."""

    def __init__(self, process: str, exit_code: int, last_lines: Sequence[str]) -> None:
        """`exit_code` is negative for a signal, as subprocess has it."""
        self.process, self.how, self.last_lines = process, _how(exit_code), tuple(last_lines)
        said = "\n".join(f"  {line}" for line in last_lines) or "  (nothing)"
        super().__init__(f"{process} {self.how}. The last that it said:\n{said}")

    def summary(self) -> dict[str, Any]:
        """Return what summary.json says of it."""
        return {"process": self.process, "how": self.how, "last_lines": list(self.last_lines)}


def _how(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"
